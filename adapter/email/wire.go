package email

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/textproto"
	"time"
)

// mostAnswer bounds one answer of the server, in bytes.
const mostAnswer = 64 << 10

var (
	errAnswer = errors.New("the answer has no end")
	errEarly  = errors.New("the server speaks out of turn")
)

// wire is the connection below the client: it bounds what the server says, and
// gives each piece of a mail its own time, as a whole mail may take long (E33).
type wire struct {
	net.Conn
	greeting bytes.Buffer  // read already, and read again by the client
	answer   int           // bytes since the last command
	piece    time.Duration // time to write one piece; zero: another deadline holds
	broken   bool          // a write has failed: the other side has not got all
}

func (w *wire) Read(p []byte) (int, error) {
	if w.greeting.Len() > 0 {
		return w.greeting.Read(p)
	}
	if w.answer > mostAnswer {
		return 0, errAnswer
	}
	n, err := w.Conn.Read(p)
	w.answer += n
	return n, err
}

func (w *wire) Write(p []byte) (int, error) {
	w.answer = 0
	if w.piece > 0 {
		if err := w.SetWriteDeadline(time.Now().Add(w.piece)); err != nil {
			w.broken = true
			return 0, err
		}
	}
	n, err := w.Conn.Write(p)
	w.broken = w.broken || err != nil
	return n, err
}

// hear reads one answer, and nothing after it: what follows unasked may have
// been put there by somebody on the way.
func hear(conn net.Conn, within time.Duration) (reply, error) {
	if err := conn.SetDeadline(time.Now().Add(within)); err != nil {
		return reply{}, err
	}
	limited := &io.LimitedReader{R: conn, N: mostAnswer}
	buffered := bufio.NewReader(limited)
	code, text, err := textproto.NewReader(buffered).ReadResponse(0)
	switch {
	case limited.N == 0:
		return reply{}, errAnswer
	case err != nil:
		return reply{}, err
	case buffered.Buffered() > 0:
		return reply{}, errEarly
	}
	return parseReply(code, text), nil
}

// say sends one command.
func say(conn net.Conn, within time.Duration, command string) (reply, error) {
	if err := conn.SetDeadline(time.Now().Add(within)); err != nil {
		return reply{}, err
	}
	if _, err := io.WriteString(conn, command+"\r\n"); err != nil {
		return reply{}, err
	}
	return hear(conn, within)
}
