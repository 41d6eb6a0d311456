package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/emersion/go-smtp"

	hf "github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/run"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// mailMeasure: notifications that wait at central become mails with one recipient each, over 8
// connections to one server.
func mailMeasure(z sizes) measure {
	m := measure{name: "mail/8", columns: []column{
		{key: "rate", unit: "msg/s"},
		{key: "reuse", title: "mails per connection", unit: "mails"},
	}}
	m.contenders = []contender{
		{
			name: "holdfast", role: roleOurs, run: func(_ context.Context, c cell) (values, error) { return mailOurs(context.Background(), c.dir, z) },
		},
		{
			name: "bare mail", role: roleBare, settings: "go-smtp's client, 8 connections that stay open, a mail of the same size again and again; no store",
			run: func(context.Context, cell) (values, error) { return mailBare(z) },
		},
	}
	return m
}

func mailOurs(ctx context.Context, dir string, z sizes) (v values, err error) {
	s, err := openMailServer(nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	channel, err := mailChannel("mail", s.port, mailConnections)
	if err != nil {
		return nil, err
	}
	p, err := openPost(ctx, dir, channel)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if err := inChunks(z.mails, func(from, to int) error { return p.ingest(ctx, "mail", to-from) }); err != nil {
		return nil, err
	}
	began := time.Now()
	p.run(ctx)
	for p.db.Counts().Pending > 0 && time.Since(began) < z.cutoff {
		time.Sleep(time.Millisecond)
	}
	took, sent := time.Since(began), z.mails-int(p.db.Counts().Pending)
	return values{"rate": float64(sent) / took.Seconds(), "reuse": float64(sent) / float64(max(s.dials.Load(), 1))}, nil
}

// mailing is a central with channels that deliver.
type mailing struct {
	db       *sqlite.DB
	books    *notify.DirectoryCache
	ingester *notify.Ingester
	stop     context.CancelFunc // nil: not running
	ended    chan error
}

func openPost(ctx context.Context, dir string, channels ...notify.Channel) (*mailing, error) {
	db, err := openStore(ctx, dir)
	if err != nil {
		return nil, err
	}
	for _, c := range channels {
		l := notify.List{Name: c.Name, Recipients: []notify.Recipient{{Channel: c.Name, Address: "a@" + c.Name + ".test"}}}
		if err := errors.Join(nodestore.New(db, nil).Directory.PutChannel(ctx, c, ""), nodestore.New(db, nil).Directory.PutList(ctx, l, "")); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	books := notify.NewDirectoryCache(nodestore.New(db, nil).Directory)
	return &mailing{db: db, books: books, ingester: &notify.Ingester{Store: db, Directory: books}}, nil
}

func (p *mailing) run(ctx context.Context) {
	ctx, p.stop = context.WithCancel(ctx)
	p.ended = make(chan error, 1)
	c := &notify.Channels{Store: p.db, Directory: p.books, Dispatcher: &hf.Dispatcher{Store: p.db, Lanes: p.db, Grace: 50 * time.Millisecond}, Kinds: mailKinds()}
	go func() {
		p.ended <- run.All(ctx, run.Part{Name: "channels", Run: c.Run}, run.Part{Name: "dispatcher", Run: c.Dispatcher.Run})
	}()
}

func (p *mailing) Close() error {
	var err error
	if p.stop != nil {
		p.stop()
		err = <-p.ended
	}
	return errors.Join(err, p.db.Close())
}

// ingest ingests count notifications for a list at once.
func (p *mailing) ingest(ctx context.Context, list string, count int) error {
	ms := make([]hf.Message, count)
	for i := range ms {
		var err error
		if ms[i], err = noticeTo(list, hf.NewID(), siteName(0)); err != nil {
			return err
		}
	}
	for _, r := range p.ingester.ReceiveBatch(ctx, ms) {
		if r.Err != nil {
			return r.Err
		}
	}
	return nil
}

func mailBare(z sizes) (v values, err error) {
	s, err := openMailServer(nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	text := []byte("From: Plant 7 <alarm@plant.test>\r\nTo: <a@mail.test>\r\nSubject: " + noticeSubject + "\r\n\r\n" + noticeBody + "\r\n")
	var left atomic.Int64
	left.Store(int64(z.mails))
	errs := make([]error, mailConnections)
	var all sync.WaitGroup
	began := time.Now()
	for i := range errs {
		all.Go(func() { errs[i] = mailLoop(s.port, text, func() bool { return left.Add(-1) >= 0 }) })
	}
	all.Wait()
	took := time.Since(began)
	return values{"rate": float64(z.mails) / took.Seconds(), "reuse": float64(z.mails) / float64(s.dials.Load())}, errors.Join(errs...)
}

// mailLoop sends over one connection while more returns true.
func mailLoop(port int, text []byte, more func() bool) error {
	conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("dial mail server: %w", err)
	}
	c := smtp.NewClient(conn)
	defer c.Close()
	if err := c.Hello("central.test"); err != nil {
		return err
	}
	for more() {
		if err := mailOnce(c, text); err != nil {
			return fmt.Errorf("send mail: %w", err)
		}
	}
	return c.Quit()
}

func mailOnce(c *smtp.Client, text []byte) error {
	if err := errors.Join(c.Mail("alarm@plant.test", nil), c.Rcpt("a@mail.test", nil)); err != nil {
		return err
	}
	w, err := c.Data()
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return errors.Join(err, w.Close())
}
