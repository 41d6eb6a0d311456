package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// Activity offers what happened to the node's messages.
type Activity struct{ c *Client }

// Activity returns the node's activity log.
func (c *Client) Activity() Activity { return Activity{c} }

// ActivityQuery narrows the log. Zero fields do not narrow.
type ActivityQuery struct {
	Kind, Destination, Message, Actor string
	Since, Until                      time.Time
	After                             int64 // ActivityPage.Next of the previous page
	Limit                             int   // 1 to 200; zero: 50
}

func (q *ActivityQuery) values() url.Values {
	query := url.Values{}
	for name, value := range map[string]string{"kind": q.Kind, "destination": q.Destination, "message": q.Message, "actor": q.Actor} {
		if value != "" {
			query.Set(name, value)
		}
	}
	for name, at := range map[string]time.Time{"since": q.Since, "until": q.Until} {
		if !at.IsZero() {
			query.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	return query
}

// List returns one page, newest first.
func (a Activity) List(ctx context.Context, q ActivityQuery) (api.ActivityPage, error) {
	query := q.values()
	if q.After > 0 {
		query.Set("after", strconv.FormatInt(q.After, 10))
	}
	if q.Limit != 0 {
		query.Set("limit", strconv.Itoa(q.Limit))
	}
	return get[api.ActivityPage](ctx, a.c, "/v1/activity", query)
}

// maxEvent bounds the bytes of one event.
const maxEvent = 16 << 20

// Follow calls heard with activities as they happen. after is ActivityNews.Last of the last event, to go on
// after it; negative: from now on. It returns when ctx ends, heard returns an error, or the connection breaks;
// then it returns an error, io.ErrUnexpectedEOF if the node has ended the stream. q.After and q.Limit are
// ignored.
func (a Activity) Follow(ctx context.Context, q ActivityQuery, after int64, heard func(n api.ActivityNews) error) error {
	query := q.values()
	query.Set("after", strconv.FormatInt(max(after, -1), 10))
	resp, err := a.c.roundTrip(ctx, http.MethodGet, "/v1/activity/stream", query, nil)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	if resp.StatusCode != http.StatusOK {
		return a.c.problemOf(resp)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxEvent)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var n api.ActivityNews
		if err := json.Unmarshal([]byte(data), &n); err != nil {
			return fmt.Errorf("read an event: %w", err)
		}
		if err := heard(n); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("follow activities: %w", err)
	}
	return fmt.Errorf("follow activities: %w", io.ErrUnexpectedEOF)
}
