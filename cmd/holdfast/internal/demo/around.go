package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// places makes everything around the nodes, and their files.
func (d *demo) places(ctx context.Context) (err error) {
	d.network, d.target = newNetwork(d.book), &target{book: d.book}
	var p places
	if d.database, err = newDatabase(ctx, d.dir, d.book); err != nil {
		return err
	}
	if d.mail, err = newMailServer(ctx, d.book); err != nil {
		return err
	}
	p.mail = d.mail.port()
	for _, s := range []struct {
		url *string
		of  http.Handler
	}{{&p.network, d.network}, {&p.program, program{d.book}}, {&p.target, d.target}} {
		if *s.url, err = d.listen(ctx, s.of); err != nil {
			return err
		}
	}
	d.networkURL = p.network
	return writeFiles(d.dir, p)
}

// listen serves h on a free port of the loopback.
func (d *demo) listen(ctx context.Context, h http.Handler) (url string, err error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug), // dying connections are part of the demo
	}
	d.servers = append(d.servers, server)
	d.serving.Go(func() { _ = server.Serve(l) }) // ends with close
	return "http://" + l.Addr().String(), nil
}

// close frees what the demo itself holds. The nodes no longer run.
func (d *demo) close() error {
	var all []error
	for _, s := range d.servers {
		all = append(all, s.Close())
	}
	d.serving.Wait()
	if d.mail != nil {
		all = append(all, d.mail.close())
	}
	if d.database != nil {
		all = append(all, d.database.close())
	}
	if d.bookFile != nil {
		all = append(all, d.bookFile.Close())
	}
	return errors.Join(all...)
}
