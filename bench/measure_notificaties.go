package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast/fanout/notificaties"
)

// openNotificaties publishes notifications of about 1 KB by the Notificaties API, under a kanaal that eventFan
// subscriptions ask for.
func openNotificaties(ctx context.Context, dir string) (l loaded, err error) {
	h, err := openHub(ctx, dir)
	if err != nil {
		return l, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.Close())
		}
	}()
	if err := h.subscribe(ctx, "127.0.0.1:9"); err != nil {
		return l, err
	}
	const secret = "letmein"
	api := &notificaties.Server{Book: h.book, Publisher: h.publisher, Client: func(id string) (notificaties.Client, bool) {
		return notificaties.Client{ID: id, Secret: secret, Scopes: []notificaties.Scope{notificaties.Publish}}, true
	}}
	e := event()
	kenmerken := map[string]string{"filler": strings.Repeat("x", 700)}
	maps.Copy(kenmerken, e.Attributes)
	body, err := json.Marshal(map[string]any{
		"kanaal": e.Topic, "source": "bench", "hoofdObject": "https://zaken.example.nl/zaken/1", "resource": "status", "resourceUrl": "https://zaken.example.nl/statussen/2", "actie": "create",
		"aanmaakdatum": "2025-01-01T12:00:00Z", "kenmerken": kenmerken,
	})
	if err != nil {
		return l, err
	}
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + encode(fmt.Appendf(nil, `{"client_id":"bench","iat":%d}`, time.Now().Unix()))
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(signed)) // a hash never fails
	token := "Bearer " + signed + "." + encode(mac.Sum(nil))
	return servePublish(ctx, h, api.Handler(), func(ctx context.Context, client *http.Client, url string) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/api/v1/notificaties", strings.NewReader(string(body)))
		if err != nil {
			return err
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", token)
		a, err := client.Do(r)
		if err != nil {
			return err
		}
		defer a.Body.Close()
		text, err := io.ReadAll(a.Body)
		if err == nil && a.StatusCode != http.StatusCreated {
			err = fmt.Errorf("the API answered %s: %.200s", a.Status, text)
		}
		return err
	})
}
