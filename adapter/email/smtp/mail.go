package smtp

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	// pieceSize is how much of a mail is written at once.
	pieceSize = 16 << 10
	// groupSize bounds the commands that are sent before their replies are
	// read: whoever sends more may wait for a server that waits for him (RFC 2920, 3.1).
	groupSize = 4 << 10
)

// ErrIncomplete says that a mail has not left as a whole: it was delivered to
// nobody.
var ErrIncomplete = errors.New("the mail was not complete")

// Envelope is whom a mail is from and for.
type Envelope struct {
	From string
	To   []string
	Size int  // of the mail, in bytes; zero: it is not told
	UTF8 bool // an address has other letters than ASCII (RFC 6531)
}

// Answers are what a server says to an envelope. The zero Reply is that to
// what it was not asked.
type Answers struct {
	Mail Reply
	To   []Reply // in order; there are fewer where the server was not asked about the others
	Data Reply   // 354: it waits for the mail, or for Clear
}

// taken says whether the server has taken a recipient.
func (a *Answers) taken() bool {
	for i := range a.To {
		if a.To[i].OK() {
			return true
		}
	}
	return false
}

// full says that no more recipients should be named now.
func (a *Answers) full() bool {
	n := len(a.To)
	return n > 0 && (a.To[n-1].Closing() || n > 1 && a.To[n-1].TooMany())
}

// Offer names a sender and recipients, and says that a mail is to come if
// anybody was taken: one after the other, or, where the server offers PIPELINING,
// as many at once as is safe (RFC 2920). Then the last of them may come with the
// announcement of the mail, which a server may want to have though it has taken nobody.
// With an error, the answers are those that came before it.
func (c *Client) Offer(e *Envelope) (Answers, error) {
	o := offer{c: c, Envelope: e}
	if strings.ContainsAny(e.From+strings.Join(e.To, ""), "\r\n") {
		return o.Answers, errOrder
	}
	var err error
	if _, ok := c.Offers("PIPELINING"); ok {
		err = o.pipelined()
	} else {
		err = o.oneByOne()
	}
	c.waiting = err == nil && o.Data.Code == 354
	return o.Answers, err
}

type offer struct {
	c *Client
	*Envelope
	Answers
	named int // recipients who were named
}

func (o *offer) oneByOne() error {
	for {
		o.c.out = o.c.out[:0]
		switch {
		case o.Mail.Code == 0:
			o.mail()
		case !o.Mail.OK():
			return nil
		case o.named < len(o.Envelope.To) && !o.full():
			o.rcpt()
		case !o.taken() || o.full() && o.Answers.To[len(o.Answers.To)-1].Closing():
			return nil
		default:
			o.c.out = append(o.c.out, "DATA\r\n"...)
			return o.ask(1)
		}
		if err := o.ask(1); err != nil {
			return err
		}
	}
}

// pipelined sends groups of commands. The last one ends with DATA.
func (o *offer) pipelined() error {
	o.c.out = o.c.out[:0]
	o.mail()
	for first := 1; ; first = 0 {
		from := o.named
		for o.named < len(o.Envelope.To) && len(o.c.out) < groupSize-mostCommand {
			o.rcpt()
		}
		commands := first + o.named - from
		if o.named == len(o.Envelope.To) {
			o.c.out = append(o.c.out, "DATA\r\n"...)
			return o.ask(commands + 1)
		}
		if err := o.ask(commands); err != nil {
			return err
		}
		if !o.Mail.OK() || o.c.closed() {
			return nil
		}
		if o.c.out = o.c.out[:0]; o.full() {
			if !o.taken() {
				return nil
			}
			o.c.out = append(o.c.out, "DATA\r\n"...)
			return o.ask(1)
		}
	}
}

// ask sends what stands in the buffer, and reads so many replies, or fewer if
// the server closes the connection. MAIL comes first, and DATA last.
func (o *offer) ask(count int) error {
	if err := o.c.write(o.c.timeouts.Command); err != nil {
		return err
	}
	for i := range count {
		if i > 0 {
			if err := o.c.conn.SetReadDeadline(time.Now().Add(o.c.timeouts.Command)); err != nil {
				return o.c.fail(err)
			}
		}
		r, err := o.c.reply()
		if err != nil {
			return err
		}
		isData := false
		switch {
		case o.Mail.Code == 0:
			o.Mail = r
		case len(o.Answers.To) < o.named:
			o.Answers.To = append(o.Answers.To, r)
		default:
			o.Data, isData = r, true
		}
		if isData && r.OK() || r.Code/100 == 3 && (!isData || r.Code != 354) {
			return o.c.fail(ErrTurn)
		}
		if r.Closing() {
			return nil
		}
	}
	return nil
}

func (o *offer) mail() {
	parameters := ""
	if _, ok := o.c.Offers("SIZE"); ok && o.Size > 0 {
		parameters = " SIZE=" + strconv.Itoa(o.Size)
	}
	if o.UTF8 {
		if _, ok := o.c.Offers("8BITMIME"); ok { // RFC 6531, 3.1: the two go together
			parameters += " BODY=8BITMIME"
		}
		parameters += " SMTPUTF8"
	}
	o.c.out = fmt.Appendf(o.c.out, "MAIL FROM:<%s>%s\r\n", o.From, parameters)
}

func (o *offer) rcpt() {
	o.c.out = append(append(o.c.out, "RCPT TO:<"...), o.Envelope.To[o.named]...)
	o.c.out = append(o.c.out, ">\r\n"...)
	o.named++
}

// Data sends the mail that the server waits for, and returns what it says to
// that. last is called before the mail is complete; where it says false, it stays
// incomplete. Lines end with CR LF on the way, and dots are safe.
func (c *Client) Data(mail []byte, last func() bool) (Reply, error) {
	if !c.waiting {
		return Reply{}, fmt.Errorf("%w: %w", ErrIncomplete, errOrder)
	}
	c.waiting = false
	before := byte('\n')
	for len(mail) > pieceSize {
		c.out, before = stuffed(c.out[:0], mail[:pieceSize], before)
		if err := c.write(c.timeouts.Piece); err != nil {
			return Reply{}, fmt.Errorf("%w: %w", ErrIncomplete, err)
		}
		mail = mail[pieceSize:]
	}
	c.out, before = stuffed(c.out[:0], mail, before)
	c.out = ended(c.out, before)
	if !last() {
		return Reply{}, fmt.Errorf("%w: %w", ErrIncomplete, c.fail(errClosed))
	}
	if err := c.write(c.timeouts.Piece); err != nil {
		return Reply{}, fmt.Errorf("%w: %w", ErrIncomplete, err)
	}
	return c.answer()
}

// answer is the reply to a whole mail.
func (c *Client) answer() (Reply, error) {
	if err := c.conn.SetReadDeadline(time.Now().Add(c.timeouts.Answer)); err != nil {
		return Reply{}, c.fail(err)
	}
	r, err := c.reply()
	if err == nil && r.Code/100 == 3 {
		return Reply{}, c.fail(ErrTurn)
	}
	return r, err
}

// Clear ends a mail that is for nobody, so that another one can be offered. Its
// error says that the connection is not to be used any more, and that what the
// server said to the envelope may have been said to something else.
func (c *Client) Clear() error {
	if c.waiting { // it gets the end of a mail, and delivers that to nobody
		c.waiting, c.out = false, append(c.out[:0], ".\r\n"...)
		if err := c.write(c.timeouts.Command); err != nil {
			return err
		}
		if _, err := c.answer(); err != nil {
			return err
		}
		return c.quiet()
	}
	switch r, err := c.command("RSET"); {
	case err != nil:
		return err
	case !r.OK():
		return c.fail(ErrTurn)
	}
	return c.quiet()
}

// stuffed appends a piece of a mail as it travels: lines end with CR LF, and a
// dot at the beginning of one is doubled. before is the byte that went before.
func stuffed(out, piece []byte, before byte) ([]byte, byte) {
	for _, b := range piece {
		switch {
		case before == '\r' && b != '\n':
			out = append(out, '\n')
			before = '\n'
		case before != '\r' && b == '\n':
			out = append(out, '\r')
		}
		if before == '\n' && b == '.' {
			out = append(out, '.')
		}
		out = append(out, b)
		before = b
	}
	return out, before
}

// ended appends the end of a mail.
func ended(out []byte, before byte) []byte {
	switch before {
	case '\r':
		out = append(out, '\n')
	case '\n':
	default:
		out = append(out, '\r', '\n')
	}
	return append(out, ".\r\n"...)
}
