package demo

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/holdfast-mq/holdfast/internal/exchange"
)

// network stands between the sites and central. It passes requests on, and reads central's answers
// for the ledger. While it is lossy, it loses some acks: central gets the request and carries it
// out, but the connection breaks before the answer.
type network struct {
	book *ledger
	to   *exchange.Client

	target atomic.Pointer[string] // http://host:port of central
	mu     sync.Mutex
	lossy  bool
	first  map[string]bool // by path; if absent, the next ack is lost for certain
}

// lossShare is the share of acks that are lost while the network is lossy.
const lossShare = 0.3

func newNetwork(book *ledger) *network {
	n := &network{book: book, to: exchange.NewClient(exchange.Settings{Idle: 32})}
	n.send("http://127.0.0.1:0") // nobody yet
	return n
}

// send sets the URL of central.
func (n *network) send(url string) { n.target.Store(&url) }

// lose begins or ends the loss of acks. The first answer on each path is always lost.
func (n *network) lose(on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lossy, n.first = on, map[string]bool{}
}

func (n *network) loses(path string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.lossy || n.first[path] && rand.Float64() >= lossShare { //nolint:gosec // no secret
		return false
	}
	n.first[path] = true
	return true
}

// ServeHTTP passes one request on.
func (n *network) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	request, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	answer, err := n.pass(r, request)
	if errors.Is(err, errAbsent) {
		http.Error(w, "central is not there", http.StatusServiceUnavailable)
		return
	}
	if err != nil {
		panic(http.ErrAbortHandler) // central died during the request
	}
	if strings.HasPrefix(r.URL.Path, linkPath) && r.URL.Path != linkPath+"messages" {
		answer.write(w)
		return
	}
	replies, err := parseReplies(answer.header.Get("Content-Type"), request, answer.body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	acks := false
	for _, reply := range replies {
		acks = acks || reply.Acknowledged
	}
	lost := acks && n.loses(r.URL.Path)
	for _, reply := range replies {
		if strings.HasPrefix(r.URL.Path, linkPath) {
			n.book.forwarded(reply.Duplicate)
		} else {
			n.book.reply(reply.ID, reply.Acknowledged, reply.Duplicate, !lost)
		}
	}
	if lost {
		panic(http.ErrAbortHandler) // net/http cuts the connection without an answer
	}
	answer.write(w)
}

// linkPath is the path below central's address where sites forward and receive questions
// (docs/guide/sites.md).
const linkPath = "/v1/link/"

// answer is a response that has been read to its end.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a *answer) write(w http.ResponseWriter) {
	copyHeader(w.Header(), a.header)
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) //nolint:gosec // as central wrote it, for a node
}

var errAbsent = errors.New("central is not there")

// pass sends the request to central and reads its whole answer.
func (n *network) pass(r *http.Request, body []byte) (answer, error) {
	out, err := http.NewRequestWithContext(r.Context(), r.Method, *n.target.Load()+r.URL.RequestURI(), bytes.NewReader(body)) //nolint:gosec // the host is the demo's own choice
	if err != nil {
		return answer{}, fmt.Errorf("pass on: %w", err)
	}
	copyHeader(out.Header, r.Header)
	out.Host = r.Host
	resp, f := n.to.Do(out, nil)
	if f != nil && !f.MaybeDelivered {
		return answer{}, errAbsent
	}
	if f != nil {
		return answer{}, fmt.Errorf("pass on: %w", f)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read, or the error says so
	all, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err == nil && len(all) > maxBody {
		err = errors.New("the answer is too long")
	}
	if err != nil {
		return answer{}, fmt.Errorf("read answer: %w", err)
	}
	return answer{resp.StatusCode, resp.Header, all}, nil
}

func copyHeader(to, from http.Header) {
	for name, values := range from {
		switch name {
		case "Connection", "Content-Length", "Date", "Transfer-Encoding": // these belong to each connection
		default:
			to[name] = values
		}
	}
}

// reply is the part of central's answer to one message that the ledger reads (docs/guide/wire-protocol.md).
type reply struct {
	ID           string `json:"messageId"`
	Acknowledged bool   `json:"acknowledged"`
	Duplicate    bool   `json:"duplicateDetected"`
}

const batchType = "application/vnd.holdfast.batch"

// parseReplies reads the answer to a message or to a batch. It finds no replies in an answer that
// has another form, such as that of a stopping node.
func parseReplies(contentType string, request, answer []byte) ([]reply, error) {
	switch kind, _, _ := strings.Cut(contentType, ";"); kind {
	case batchType:
		frames, err := splitFrames(answer)
		if err != nil {
			return nil, err
		}
		replies := make([]reply, len(frames))
		for i, f := range frames {
			if err := json.Unmarshal(f, &replies[i]); err != nil {
				return nil, fmt.Errorf("reply %d of a batch: %w", i, err)
			}
		}
		return replies, nil
	case "application/json":
		var sent, got reply
		if err := json.Unmarshal(answer, &got); err != nil {
			return nil, fmt.Errorf("reply: %w", err)
		}
		if err := json.Unmarshal(request, &sent); err == nil { // else the whole batch was refused
			got.ID = sent.ID
		}
		return []reply{got}, nil
	}
	return nil, nil
}

// splitFrames takes a batch apart: length in decimal digits, LF, content, LF.
func splitFrames(b []byte) ([][]byte, error) {
	var frames [][]byte
	for len(b) > 0 {
		head, rest, _ := bytes.Cut(b, []byte("\n"))
		n, err := strconv.ParseUint(string(head), 10, 31)
		if err != nil || n >= uint64(len(rest)) || rest[n] != '\n' {
			return nil, fmt.Errorf("frame %d of a batch is damaged", len(frames))
		}
		frames, b = append(frames, rest[:n]), rest[n+1:]
	}
	return frames, nil
}
