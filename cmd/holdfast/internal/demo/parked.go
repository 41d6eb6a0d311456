package demo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// lookParked asks the nodes what they have set aside, and why: the newest entries, or all.
func (d *demo) lookParked(ctx context.Context, all bool) error {
	var faults []error
	for _, p := range d.plants {
		faults = append(faults, d.lookParkedAt(ctx, *p.url.Load()+"/v1/messages?state=parked&state=discarded", all))
	}
	return errors.Join(append(faults, d.lookParkedAt(ctx, *d.network.target.Load()+"/v1/notifications?status=parked", all))...)
}

// lookParkedAt follows the pages of one list.
func (d *demo) lookParkedAt(ctx context.Context, list string, all bool) error {
	type parked struct {
		ID        string `json:"id"`
		Reason    string `json:"reason"`
		LastError string `json:"lastError"`
	}
	var page struct {
		Messages      []parked `json:"messages"`
		Notifications []parked `json:"notifications"`
		Next          string   `json:"next"`
	}
	for after := ""; ; after = page.Next {
		page.Messages, page.Notifications, page.Next = nil, nil, ""
		if err := d.get(ctx, list+"&limit=200&after="+url.QueryEscape(after), &page); err != nil {
			return err
		}
		for _, p := range append(page.Messages, page.Notifications...) {
			d.book.park(p.ID, cmp.Or(p.LastError, p.Reason))
		}
		if !all || page.Next == "" {
			return nil
		}
	}
}

// get sends a GET request to a node.
func (d *demo) get(ctx context.Context, url string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("ask %s: %w", url, err)
	}
	resp, f := d.central.client.Do(req, nil)
	if f != nil {
		return fmt.Errorf("ask %s: %w", url, f)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read, or the error says so
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("ask %s: the answer is %s", url, resp.Status)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxBody)).Decode(into); err != nil {
		return fmt.Errorf("ask %s: %w", url, err)
	}
	return nil
}
