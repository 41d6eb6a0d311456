package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	hf "github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/link"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// office is a central: its store, a book with one list on one channel that nobody serves, and the
// link over TLS.
type office struct {
	db       *sqlite.DB
	ingester *notify.Ingester
	central  *link.Central
	copies   *nodestore.Telemetry
	server   *http.Server
	files    certFiles
	address  string
}

// openOffice opens a central in an existing directory. stored, if not nil, is called for each
// message once it is on disk.
func openOffice(ctx context.Context, dir string, stored func(id hf.ID)) (o *office, err error) {
	o = &office{}
	if o.db, err = openStore(ctx, dir); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, o.db.Close())
		}
	}()
	if err := putDirectory(ctx, o.db, notify.Channel{Name: "mail", Kind: "email"}); err != nil {
		return nil, err
	}
	o.ingester = &notify.Ingester{Store: o.db, Directory: notify.NewDirectoryCache(nodestore.New(o.db, nil).Directory)}
	o.copies = nodestore.New(o.db, nil).Telemetry
	o.central, err = link.NewCentral(link.CentralConfig{
		Store: nodestore.New(o.db, nil).Sites, Receiver: telling{o.ingester, stored}, Copies: o.copies, Destination: "central",
	})
	if err != nil {
		return nil, err
	}
	if o.files, err = makeCert(dir); err != nil {
		return nil, err
	}
	o.server, o.address, err = serveTLS(o.files, o.central.Handler())
	return o, err
}

// putDirectory makes the list of all notices, with one recipient on each channel.
func putDirectory(ctx context.Context, db *sqlite.DB, channels ...notify.Channel) error {
	l := notify.List{Name: noticeList}
	for _, c := range channels {
		if err := nodestore.New(db, nil).Directory.PutChannel(ctx, c, ""); err != nil {
			return err
		}
		l.Recipients = append(l.Recipients, notify.Recipient{Channel: c.Name, Address: "a@" + c.Name + ".test"})
	}
	return nodestore.New(db, nil).Directory.PutList(ctx, l, "")
}

// serveTLS serves h on the loopback.
func serveTLS(files certFiles, h http.Handler) (*http.Server, string, error) {
	conf, err := link.ServerTLS(link.Files{Cert: files.cert, Key: files.key}, nil)
	if err != nil {
		return nil, "", err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", fmt.Errorf("listen: %w", err)
	}
	s := &http.Server{Handler: h, TLSConfig: conf, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.ServeTLS(l, "", "") }()
	return s, l.Addr().String(), nil
}

func (o *office) Close() error {
	o.central.Close()
	return errors.Join(o.server.Close(), o.db.Close())
}

// telling reports which messages are on disk.
type telling struct {
	*notify.Ingester
	stored func(id hf.ID)
}

func (t telling) ReceiveBatch(ctx context.Context, ms []hf.Message) []hf.Result {
	results := t.Ingester.ReceiveBatch(ctx, ms)
	if t.stored != nil {
		for i := range results {
			if results[i].Err == nil {
				t.stored(ms[i].ID)
			}
		}
	}
	return results
}

func (t telling) Receive(ctx context.Context, m hf.Message) (hf.Receipt, error) {
	r := t.ReceiveBatch(ctx, []hf.Message{m})[0]
	return r.Receipt, r.Err
}

func siteName(n int) string { return "plant-" + strconv.Itoa(n) }

// plant enrolls a site that reaches central at the address, and makes its end of the link.
func (o *office) plant(ctx context.Context, dir, name, address string, db *sqlite.DB) (*link.Site, error) {
	token, err := o.central.Add(ctx, name, "")
	if err != nil {
		return nil, err
	}
	conf := link.EnrollConfig{URL: "https://" + address, Token: token, File: filepath.Join(dir, name+".credential"), TLS: link.Files{CA: o.files.cert}}
	if _, err := link.Enroll(ctx, conf); err != nil {
		return nil, err
	}
	past := time.Now().Add(-time.Hour) // most sites were enrolled long ago
	if err := os.Chtimes(conf.File, past, past); err != nil {
		return nil, err
	}
	return link.NewSite(link.SiteConfig{URL: conf.URL, File: conf.File, Outbox: db, Telemetry: nodestore.New(db, nil).Telemetry, TLS: conf.TLS})
}
