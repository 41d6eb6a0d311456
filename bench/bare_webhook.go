package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast/fanout"
)

// openBareWebhooks posts the same data as often, as many at a time to each subscriber.
func openBareWebhooks(ctx context.Context, _ string, z sizes, to []string) (webhookRun, error) {
	const each = fanout.DefaultConcurrency
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: eventFan * each}}
	return webhookRun{
		close: func() error { client.CloseIdleConnections(); return nil },
		deliver: func() (int, error) {
			errs := make([]error, eventFan*each)
			var all sync.WaitGroup
			for i := range errs {
				all.Go(func() {
					n, key := i%eventFan, subscriberKey(i%eventFan)
					for range z.webhooks / len(errs) {
						if errs[i] = bareWebhook(ctx, client, subscriberURL(to, n), key); errs[i] != nil {
							return
						}
					}
				})
			}
			all.Wait()
			return z.webhooks, errors.Join(errs...)
		},
	}, nil
}

// bareWebhook signs by hand and posts.
func bareWebhook(ctx context.Context, client *http.Client, url string, key []byte) error {
	uuid := newID()
	id, at := fmt.Sprintf("%x", uuid[:]), strconv.FormatInt(time.Now().Unix(), 10)
	h := hmac.New(sha256.New, key)
	h.Write([]byte(id + "." + at + "."))
	h.Write(eventData)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(eventData))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Webhook-Id", id)
	r.Header.Set("Webhook-Timestamp", at)
	r.Header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(h.Sum(nil)))
	a, err := client.Do(r)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	if _, err := io.Copy(io.Discard, a.Body); err != nil {
		return err
	}
	if a.StatusCode != http.StatusNoContent {
		return fmt.Errorf("receiver answered %s", a.Status)
	}
	return nil
}
