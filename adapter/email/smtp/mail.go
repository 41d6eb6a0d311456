package smtp

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	// pieceSize is how many bytes of a mail are written at once.
	pieceSize = 16 << 10
	// groupSize limits the commands that are sent before their replies are read. A client that
	// sends more may wait for a server that waits for the client (RFC 2920, 3.1).
	groupSize = 4 << 10
)

// ErrIncomplete means that a mail was not sent completely. It was delivered to nobody.
var ErrIncomplete = errors.New("the mail was not complete")

// Envelope has the sender and the recipients of a mail.
type Envelope struct {
	From string
	To   []string
	Size int  // of the mail, in bytes; zero: not told to the server
	UTF8 bool // an address has non-ASCII letters (RFC 6531)
}

// Answers are the server's replies to an envelope. A command that was not sent has the zero Reply.
type Answers struct {
	Mail Reply
	To   []Reply // in order; shorter if the server was not asked about all
	Data Reply   // 354: the server waits for the mail, or for Clear
}

// taken reports whether the server has accepted a recipient.
func (a *Answers) taken() bool {
	for i := range a.To {
		if a.To[i].OK() {
			return true
		}
	}
	return false
}

// full reports that no more recipients should be named now.
func (a *Answers) full() bool {
	n := len(a.To)
	return n > 0 && (a.To[n-1].Closing() || n > 1 && a.To[n-1].TooMany())
}

// Offer names a sender and recipients, and announces a mail if any recipient was accepted. It sends
// one command at a time, or, if the server offers PIPELINING, as many at once as is safe (RFC
// 2920). With PIPELINING the last group may include the announcement, and a server may then want
// the mail although it has accepted nobody. With an error, the answers are those that came before
// it.
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
	named int // recipients named so far
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

// pipelined sends groups of commands. The last group ends with DATA.
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

// ask sends the contents of the buffer and reads count replies, or fewer if the server closes the
// connection. MAIL comes first, and DATA last.
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
		if _, ok := o.c.Offers("8BITMIME"); ok { // RFC 6531, 3.1: SMTPUTF8 needs 8BITMIME
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

// Data sends the mail that the server waits for and returns the server's reply. It calls last
// before the mail is complete; if last returns false, the mail stays incomplete. Data writes CR LF
// at the end of each line and escapes leading dots.
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

// answer reads the reply to a whole mail.
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

// Clear ends a mail without recipients, so that another one can be offered. An error means that the
// connection must not be used any more, and that the replies to the envelope may belong to other
// commands.
func (c *Client) Clear() error {
	if c.waiting { // send the end of an empty mail, which is delivered to nobody
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

// stuffed appends a piece of a mail in the form of the wire: lines end with CR LF, and a dot at the
// beginning of a line is doubled. before is the preceding byte.
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
