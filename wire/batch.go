package wire

import (
	"bytes"
	"errors"
	"strconv"
)

// Content types of one envelope and of a batch. Replies have the same types.
const (
	MessageType = "application/json"
	BatchType   = "application/vnd.holdfast.batch"
)

// A probe asks whether a peer accepts a sender's signature, and delivers nothing. Its body is one
// frame, so a peer that ignores the content type finds no envelope in it. Its signature covers
// ProbePath, so nobody can make a message out of it.
const (
	ProbeType = "application/vnd.holdfast.probe"
	ProbePath = "/_rf/probe" // only signed; probes are posted to ReceivePath
	// CodeProbe is the code of the reply to a probe with a good signature.
	CodeProbe = "probe_accepted"
)

// maxFrameDigits limits the length line of a frame.
const maxFrameDigits = 10

// AppendFrame appends one frame of a batch: the decimal length of data, a
// line feed, data, a line feed. Data may hold line feeds itself.
func AppendFrame(dst, data []byte) []byte {
	dst = strconv.AppendInt(dst, int64(len(data)), 10)
	dst = append(dst, '\n')
	dst = append(dst, data...)
	return append(dst, '\n')
}

// NextFrame cuts the first frame off a batch. The frame shares memory with batch.
func NextFrame(batch []byte) (frame, rest []byte, err error) {
	line := batch[:min(len(batch), maxFrameDigits+1)]
	end := bytes.IndexByte(line, '\n')
	if end < 0 {
		return nil, nil, errors.New("read frame: no length line")
	}
	n, ok := digits(line[:end], int64(len(batch)))
	if !ok {
		return nil, nil, errors.New("read frame: the length is no number or reaches past the end")
	}
	data := batch[end+1:]
	if int64(len(data)) <= n || data[n] != '\n' {
		return nil, nil, errors.New("read frame: it does not end with a line feed")
	}
	return data[:n:n], data[n+1:], nil
}

// Frames cuts a whole batch into at most limit frames. So a damaged batch is refused before its
// first message is taken.
func Frames(batch []byte, limit int) ([][]byte, error) {
	var frames [][]byte
	for len(batch) > 0 {
		if len(frames) == limit {
			return nil, ErrTooMany
		}
		frame, rest, err := NextFrame(batch)
		if err != nil {
			return nil, err
		}
		frames, batch = append(frames, frame), rest
	}
	return frames, nil
}

// ErrTooMany means that a batch has more frames than the limit.
var ErrTooMany = errors.New("read batch: too many frames")
