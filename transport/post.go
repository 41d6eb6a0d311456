package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/bearer"
	"github.com/holdfast-mq/holdfast/internal/exchange"
	"github.com/holdfast-mq/holdfast/internal/secrets"
)

// answer is a response, read to its end.
type answer struct {
	status int
	header http.Header
	body   []byte
	sent   string // the credential sent with the request; may be empty
}

// post makes one request. Its failure classifies an exchange that brought no whole response.
func (c *Client) post(ctx context.Context, url, contentType string, body []byte) (answer, *holdfast.Failure) {
	if err := ctx.Err(); err != nil {
		return answer{}, &holdfast.Failure{Outcome: holdfast.NotStarted, Code: CodeCanceled, Err: err}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return answer{}, &holdfast.Failure{Outcome: holdfast.LaneFault, Code: CodeConnect, Err: err}
	}
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("Accept", contentType)
	req.Header.Set("User-Agent", "holdfast")
	sent, fail := c.present(req)
	if fail != nil {
		return answer{}, fail
	}
	if at, ok := ctx.Deadline(); ok {
		req.Header.Set(HeaderBudget, strconv.FormatInt(budgetFor(time.Until(at)).Milliseconds(), 10))
	}
	hide := func() *secrets.Set { return hidden(sent) }
	resp, fail := c.http.Do(req, hide)
	if fail != nil {
		return answer{}, fail
	}
	defer resp.Body.Close() //nolint:errcheck // it was read; nothing depends on it
	a := answer{status: resp.StatusCode, header: resp.Header, sent: sent}
	a.body, err = readAll(resp, c.conf.MaxReply+1)
	switch {
	case err != nil:
		return answer{}, exchange.Unanswered(ctx, fmt.Errorf("read reply: %w", err), true, hide)
	case int64(len(a.body)) > c.conf.MaxReply:
		return answer{}, &holdfast.Failure{
			Code: CodeReplyTooLong, MaybeDelivered: true,
			Err: errors.New("read reply: it is larger than " + strconv.FormatInt(c.conf.MaxReply, 10) + " bytes"),
		}
	}
	if url == c.url { // other paths announce nothing
		c.offer.update(resp.Header, resp.StatusCode >= 200 && resp.StatusCode < 300)
	}
	return a, nil
}

// present adds the credential to a request and returns it.
func (c *Client) present(req *http.Request) (string, *holdfast.Failure) {
	if c.conf.Credential == nil {
		return "", nil
	}
	secret, err := c.conf.Credential()
	if err != nil {
		return "", &holdfast.Failure{Outcome: holdfast.LaneFault, Code: CodeCredential, Err: err}
	}
	bearer.Set(req.Header, secret)
	return secret, nil
}

// hidden returns the secrets to remove from what the other side says: a proxy may quote the
// credential that it was sent.
func hidden(credential string) *secrets.Set {
	s := &secrets.Set{}
	s.Add(credential)
	return s
}

// readAll reads a body of at most limit bytes.
func readAll(resp *http.Response, limit int64) ([]byte, error) {
	if n := resp.ContentLength; n >= 0 && n < limit {
		body := make([]byte, n)
		_, err := io.ReadFull(resp.Body, body)
		return body, err
	}
	return io.ReadAll(io.LimitReader(resp.Body, limit))
}

// budgetFor returns the receiver's part of the time left. The rest is for work that has begun to
// end, and for the reply to return; otherwise nobody would hear "not begun".
func budgetFor(left time.Duration) time.Duration {
	return max(left-min(left/5, 2*time.Second), time.Millisecond)
}
