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

func (b *Book) Try(id string)                              { b.try(id) }
func (b *Book) Accept(id string)                           { b.accept(id) }
func (b *Book) Reply(id string, ack, duplicate, pass bool) { b.reply(id, ack, duplicate, pass) }
func (b *Book) Call(key, id string) error                  { return b.call(key, id) }
func (b *Book) Now() Counts                                { return b.now() }
func (b *Book) Final() Counts                              { return b.final() }
func (b *Book) Send(url string)                            { b.Network.send(url) }
func (b *Book) Lose(on bool)                               { b.Network.lose(on) }

// Seen returns what a person sees of one phase, and of the summary after it.
func Seen(out io.Writer, redraw, color bool, c Counts, err error) {
	v := &view{out: out, redraw: redraw, color: color, length: 30 * time.Second, most: 30 * time.Second}
	v.phase("the receiver is away", c, 12*time.Second)
	v.draw(c, 12*time.Second)
	v.summary(c, err == nil, "The files are gone.")
}
