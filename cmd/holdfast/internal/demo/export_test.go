package demo

import (
	"io"
	"net/http"
	"time"
)

// Book is the ledger with its parts around it.
type Book struct {
	*ledger
	Network *network
	Program http.Handler
}

func NewBook(file io.Writer) *Book {
	l := newLedger(file)
	return &Book{l, newNetwork(l), program{l}}
}

func (b *Book) Try(id string, to ...string)                { b.try(id, to...) }
func (b *Book) Accept(id string)                           { b.accept(id) }
func (b *Book) Reply(id string, ack, duplicate, pass bool) { b.reply(id, ack, duplicate, pass) }
func (b *Book) Call(key, id string) error                  { return b.call(key, id) }
func (b *Book) Refuse(id string)                           { b.refuse(id) }
func (b *Book) Park(id, reason string)                     { b.park(id, reason) }
func (b *Book) Mail(key, id, address string) error         { return b.mail(key, id, address) }
func (b *Book) Called(key, id string) error                { return b.called(key, id) }
func (b *Book) Row(key, id string, times int) error        { return b.row(key, id, times) }
func (b *Book) Now() Counts                                { return b.now() }
func (b *Book) Final() Counts                              { return b.final() }
func (b *Book) Send(url string)                            { b.Network.send(url) }
func (b *Book) Lose(on bool)                               { b.Network.lose(on) }

// Seen returns what a person sees of one phase, and of the summary after it.
func Seen(out io.Writer, redraw, color bool, c Counts, err error) {
	v := &view{out: out, redraw: redraw, color: color, length: 30 * time.Second, most: 30 * time.Second}
	v.phase("central is away", c, 12*time.Second)
	v.draw(c, 12*time.Second)
	v.summary(c, err == nil, "The files are gone.")
}
