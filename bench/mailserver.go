package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"sync/atomic"

	"github.com/emersion/go-smtp"

	"github.com/holdfast-mq/holdfast/adapter/email"
	"github.com/holdfast-mq/holdfast/notify"
)

const mailConnections = 8

// mailServer accepts each mail on the loopback and keeps none.
type mailServer struct {
	server *smtp.Server
	port   int
	got    func(mail []byte) // each mail; may be nil
	dials  atomic.Int64
}

func openMailServer(got func(mail []byte)) (*mailServer, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	s := &mailServer{port: l.Addr().(*net.TCPAddr).Port, got: got}
	s.server = smtp.NewServer(s)
	s.server.Domain, s.server.MaxLineLength = "mail.test", 998
	go func() { _ = s.server.Serve(l) }()
	return s, nil
}

func (s *mailServer) Close() error { return s.server.Close() }

// NewSession implements smtp.Backend.
func (s *mailServer) NewSession(*smtp.Conn) (smtp.Session, error) {
	s.dials.Add(1)
	return mailSession{s}, nil
}

type mailSession struct{ s *mailServer }

func (mailSession) Reset()                               {}
func (mailSession) Logout() error                        { return nil }
func (mailSession) Mail(string, *smtp.MailOptions) error { return nil }
func (mailSession) Rcpt(string, *smtp.RcptOptions) error { return nil }

func (m mailSession) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	if err == nil && m.s.got != nil {
		m.s.got(text)
	}
	return err
}

// openSilent listens and never sends anything.
func openSilent() (l net.Listener, port int, err error) {
	if l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, 0, fmt.Errorf("listen: %w", err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(io.Discard, c) }() // until the client gives up
		}
	}()
	return l, l.Addr().(*net.TCPAddr).Port, nil
}

// mailChannel returns a channel to a local server, with the given number of connections.
func mailChannel(name string, port, connections int) (notify.Channel, error) {
	settings, err := json.Marshal(map[string]any{
		"host": "127.0.0.1", "port": port, "tls": "none", "from": "Plant 7 <alarm@plant.test>", "ehlo": "central.test", "connections": connections,
	})
	return notify.Channel{Name: name, Kind: "email", Settings: settings, Workers: connections}, err
}

// mailKinds returns the kinds of channel that a central has.
func mailKinds() map[string]notify.Kind {
	return map[string]notify.Kind{"email": {
		New: func(c notify.Channel) (notify.Adapter, error) { return email.New(c.Settings, email.Options{}) },
	}}
}
