package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

const bareBatchCap = 256 // messages in one POST

// bareHop joins two bare loops by plain POSTs of framed messages: a 4-byte length, the id, the
// payload. A 200 acknowledges all.
func bareHop() Hop {
	return Hop{Receive: bareReceive, Send: bareSend}
}

func bareReceive(ctx context.Context, h Receiving) error {
	l, err := startBare(h.Dir, 0, nil)
	if err != nil {
		return err
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ms, err := readFrames(r.Body)
		if err == nil {
			err = l.enqueue(ms...)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	if err := s.Serve(h.Listener); !errors.Is(err, http.ErrServerClosed) {
		return errors.Join(err, l.Close())
	}
	return l.Close()
}

func bareSend(ctx context.Context, s Setup, url string, batch bool) (Queue, error) {
	workers := 64
	if batch {
		workers = 4
	}
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: workers}}
	single := make(chan []bareMessage) // one message each, so that all workers share a commit
	consume := func(l *bareLoop, committed <-chan []bareMessage) {
		for ms := range committed {
			post(ctx, l, client, url, s.Deliver, ms)
		}
	}
	if batch {
		return startBare(s.Dir, workers, func(l *bareLoop, committed <-chan []bareMessage) {
			consume(l, gather(committed))
		})
	}
	l, err := startBare(s.Dir, 1, func(_ *bareLoop, committed <-chan []bareMessage) {
		defer close(single)
		for ms := range committed {
			for i := range ms {
				single <- ms[i : i+1]
			}
		}
	})
	if err != nil {
		return nil, err
	}
	for range workers {
		l.wg.Go(func() { consume(l, single) })
	}
	return l, nil
}

// gather joins available messages into batches.
func gather(in <-chan []bareMessage) <-chan []bareMessage {
	out := make(chan []bareMessage)
	go func() {
		defer close(out)
		for ms := range in {
			batch := append([]bareMessage(nil), ms...)
			for more := true; more && len(batch) < bareBatchCap; {
				select {
				case next, ok := <-in:
					batch, more = append(batch, next...), ok
				default:
					more = false
				}
			}
			for len(batch) > bareBatchCap {
				out <- batch[:bareBatchCap]
				batch = batch[bareBatchCap:]
			}
			out <- batch
		}
	}()
	return out
}

// post sends one request and marks its messages when the ack comes. A message without an ack stays
// unsettled, and the measure reports it.
func post(ctx context.Context, l *bareLoop, client *http.Client, url string, acked Deliver, ms []bareMessage) {
	if err := send(ctx, client, url, ms); err != nil {
		return
	}
	seqs := make([]int64, len(ms))
	for i, m := range ms {
		seqs[i] = m.seq
		_ = acked(ctx, int(m.lane), m.payload)
	}
	l.mark(seqs)
}

func send(ctx context.Context, client *http.Client, url string, ms []bareMessage) error {
	body := make([]byte, 0, len(ms)*(payloadSize+20))
	for _, m := range ms {
		body = binary.BigEndian.AppendUint32(body, uint32(len(m.payload)))
		body = append(append(body, m.id[:]...), m.payload...)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	a, err := client.Do(r)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	if _, err := io.Copy(io.Discard, a.Body); err != nil {
		return err
	}
	if a.StatusCode != http.StatusOK {
		return fmt.Errorf("receiver answered %s", a.Status)
	}
	return nil
}

func readFrames(r io.Reader) ([]bareMessage, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	var ms []bareMessage
	for len(b) > 0 {
		if len(b) < 20 || len(b) < 20+int(binary.BigEndian.Uint32(b)) {
			return nil, errors.New("frame is cut short")
		}
		end := 20 + int(binary.BigEndian.Uint32(b))
		m := bareMessage{payload: b[20:end]}
		copy(m.id[:], b[4:20])
		ms, b = append(ms, m), b[end:]
	}
	return ms, nil
}
