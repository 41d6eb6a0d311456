package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Bounds of Options.
const (
	DefaultLength = 30 * time.Second
	MaxLength     = time.Hour
	DefaultRate   = 50
	MaxRate       = 1000
)

const (
	drainWait = 30 * time.Second
	draw      = 200 * time.Millisecond
	lookEvery = 500 * time.Millisecond
)

// Options say how a demo runs.
type Options struct {
	Program []string      // the command holdfast, before its arguments
	Length  time.Duration // how long the demo sends; zero: DefaultLength
	Rate    int           // messages per second of both sites together; zero: DefaultRate
	Keep    string        // folder for the files, which are kept; empty: a temporary folder
	Wait    time.Duration // how long to wait, without any progress, for what must still come; zero: 30 s

	Out    io.Writer // output for people; nil: none
	Redraw bool      // Out is a terminal, whose lines can be drawn again
	Color  bool
}

// demo is one run.
type demo struct {
	o          Options
	dir        string
	book       *ledger
	bookFile   *os.File
	network    *network
	networkURL string
	central    *child
	plants     []*plant
	target     *target
	mail       *mailServer
	database   *database
	servers    []*http.Server
	serving    sync.WaitGroup
	view       *view
	began      time.Time
}

// Run runs a demo to its end. If ctx ends, it ends what is under way, and then stops. The counts
// are nil if the demo did not begin. The error says what went wrong, above all which promises were
// broken.
func Run(ctx context.Context, o Options) (*Counts, error) {
	d, err := prepare(ctx, o)
	if err != nil {
		return nil, err
	}
	run, fail := context.WithCancelCause(context.WithoutCancel(ctx)) // only a fault ends it
	defer fail(nil)
	for _, c := range d.nodes() {
		c.fail = fail
	}
	err = d.run(ctx, run)
	for _, c := range d.nodes() {
		c.kill()
	}
	counts := d.book.final()
	err = errors.Join(counts.Err(), err, d.close())
	d.view.summary(counts, err == nil, d.farewell(err))
	return &counts, err
}

// prepare makes everything that is needed before the first process starts.
func prepare(ctx context.Context, o Options) (_ *demo, err error) {
	if o.Length == 0 {
		o.Length = DefaultLength
	}
	if o.Rate == 0 {
		o.Rate = DefaultRate
	}
	if o.Wait == 0 {
		o.Wait = drainWait
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	d := &demo{o: o, view: &view{out: o.Out, redraw: o.Redraw, color: o.Color, length: o.Length, most: o.Length}}
	if d.dir, err = makeFolder(o.Keep); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close())
			if o.Keep == "" {
				err = errors.Join(err, os.RemoveAll(d.dir))
			}
		}
	}()
	if d.bookFile, err = os.OpenFile(filepath.Join(d.dir, "ledger.jsonl"), os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
		return nil, fmt.Errorf("open the ledger: %w", err)
	}
	d.book = newLedger(d.bookFile)
	if err = d.places(ctx); err != nil {
		return nil, err
	}
	d.central = d.child("central")
	for _, name := range sites {
		d.plants = append(d.plants, newPlant(d.child(name), d.book, o.Rate))
	}
	return d, nil
}

// run is the demo between its preparation and its final counts. stop ends it early; work ends it
// only if something is broken.
func (d *demo) run(stop, work context.Context) (err error) {
	d.began = time.Now()
	d.view.phase("central starts, and two sites enroll there", Counts{}, 0)
	if err := d.open(work); err != nil {
		return err
	}
	d.began = time.Now()
	drawn, stopDrawing := context.WithCancel(work)
	finish, giveUp := context.WithCancel(work)
	intake, closeIntake := context.WithCancel(work)
	var all sync.WaitGroup
	all.Go(func() { d.keepDrawing(drawn) })
	all.Go(func() { d.keepLooking(drawn) })
	for _, p := range d.plants {
		all.Go(func() { p.run(intake, finish) })
	}
	defer func() {
		closeIntake()
		giveUp()
		stopDrawing()
		all.Wait()
	}()
	if err := d.script(stop, work); err != nil {
		return err
	}
	closeIntake()
	if stop.Err() != nil {
		d.view.interrupt(time.Since(d.began))
	}
	d.phase("nothing more is sent; what waits is delivered")
	if err := d.drain(work); err != nil {
		return err
	}
	return d.end()
}

func (d *demo) keepDrawing(ctx context.Context) {
	tick := time.NewTicker(draw)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			d.view.draw(d.book.now(), time.Since(d.began))
		case <-ctx.Done():
			return
		}
	}
}

// keepLooking updates the view. The drain looks at everything again, and reports faults.
func (d *demo) keepLooking(ctx context.Context) {
	for pause(ctx, lookEvery) == nil {
		_ = d.look(ctx, false)
	}
}

func (d *demo) phase(text string) { d.view.phase(text, d.book.now(), time.Since(d.began)) }

// farewell removes the files, unless they are wanted or show what went wrong. It says which of these applies.
func (d *demo) farewell(err error) string {
	switch {
	case d.o.Keep != "":
		return "The files are in " + d.dir + "."
	case err != nil:
		return "The files are left in " + d.dir + ", for whoever looks into it."
	}
	if err := os.RemoveAll(d.dir); err != nil {
		return "The files could not be removed: " + err.Error() + "."
	}
	return "The files, " + d.dir + ", are removed; keep them with --keep DIR."
}
