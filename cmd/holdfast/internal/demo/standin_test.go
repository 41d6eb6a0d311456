package demo_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/smtp"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// standIn is the program as far as the demo uses it.
func standIn(mode string, args []string) error {
	switch args[0] {
	case "sites":
		fmt.Println(`{"name":"a site","token":"a token"}`)
		return nil
	case "enroll":
		token, err := io.ReadAll(os.Stdin)
		if err == nil && string(token) != "a token\n" {
			err = fmt.Errorf("got token %q", token)
		}
		return err
	}
	if mode == "die" {
		return errors.New("no mood")
	}
	config := args[len(args)-1]
	text, err := os.ReadFile(config)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("  listening   http://%s\n", l.Addr())
	mux := http.NewServeMux()
	mux.HandleFunc("/readyz", func(http.ResponseWriter, *http.Request) {})
	if strings.HasSuffix(config, "central.yaml") {
		standInCentral(mux, mode, string(text))
	} else {
		s := &standInSite{mode: mode, config: string(text), dir: filepath.Dir(config), parked: config + ".parked"}
		s.serve(mux)
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = l.Close()
	}()
	_ = http.Serve(l, mux)
	return nil
}

func standInCentral(mux *http.ServeMux, mode, config string) {
	program := regexp.MustCompile(`forward: (http://[0-9.:]+)`).FindStringSubmatch(config)[1]
	mux.HandleFunc("GET /v1/notifications", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"notifications":[]}`) })
	mux.HandleFunc("/_rf/receive", func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID      string          `json:"messageId"`
			Payload json.RawMessage `json:"payload"`
		}
		_ = json.NewDecoder(r.Body).Decode(&m)
		if mode != "forget" {
			post(program, m.ID, string(m.Payload))
		}
		if mode == "double" {
			post(program, m.ID+" again", string(m.Payload))
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"acknowledged":true}`)
	})
}

// standInSite is a site that keeps nothing but what is parked: it accepts
// something when it has been delivered.
type standInSite struct{ mode, config, dir, parked string }

func (s *standInSite) serve(mux *http.ServeMux) {
	mux.HandleFunc("/_rf/outbox/stats", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"pending":0}`) })
	mux.HandleFunc("GET /v1/messages", func(w http.ResponseWriter, _ *http.Request) {
		list, _ := os.ReadFile(s.parked)
		_, _ = io.WriteString(w, `{"messages":[`+strings.Join(strings.Fields(string(list)), ",")+`]}`)
	})
	mux.HandleFunc("POST /v1/", func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID          string          `json:"id"`
			Destination string          `json:"destination"`
			List        string          `json:"list"`
			Payload     json.RawMessage `json:"payload"`
		}
		_ = json.NewDecoder(r.Body).Decode(&m)
		again := []string{""}
		if s.mode == "double" {
			again = append(again, "-again")
		}
		status := http.StatusAccepted
		switch {
		case s.mode == "drop":
			again = nil
		case s.mode == "park" && m.Destination == "parts":
			again = nil
			s.park(m.ID)
		}
		for _, suffix := range again {
			status = max(status, s.deliver(m.Destination, m.ID, suffix, m.List, m.Payload))
		}
		if status == http.StatusUnprocessableEntity {
			s.park(m.ID)
			status = http.StatusAccepted
		}
		w.WriteHeader(status)
	})
}

func (s *standInSite) park(id string) {
	f, err := os.OpenFile(s.parked, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, _ = fmt.Fprintf(f, "{\"id\":%q,\"reason\":\"permanent\"}\n", id)
		_ = f.Close()
	}
}

// deliver returns 422 for what is refused, and 503 for what shall come again.
func (s *standInSite) deliver(destination, id, suffix, list string, payload []byte) int {
	find := func(what string) string { return regexp.MustCompile(what).FindStringSubmatch(s.config)[1] }
	var status int
	switch destination {
	case "orders":
		if suffix == "" { // the doubles are central's
			status = post(find(`url: (http://[0-9.:]+)`)+"/_rf/receive", "", fmt.Sprintf(`{"messageId":%q,"payload":%s}`, id, payload))
		} else {
			status = http.StatusOK
		}
	case "parts":
		status = post(find(`call: {url: "(http://[0-9.:]+)"`), id+suffix, string(payload))
	case "readings":
		return s.insert(id+suffix, payload)
	default:
		return s.tell(id, suffix, list)
	}
	switch {
	case status == http.StatusUnprocessableEntity:
		return status
	case status/100 == 2:
		return http.StatusAccepted
	}
	return http.StatusServiceUnavailable
}

func (s *standInSite) insert(id string, payload []byte) int {
	path, _ := os.ReadFile(filepath.Join(s.dir, "readings.dsn"))
	db, err := sql.Open("sqlite", "file:"+strings.TrimSpace(string(path))+"?_pragma=busy_timeout(5000)")
	if err != nil {
		return http.StatusServiceUnavailable
	}
	defer db.Close()
	var row struct {
		Reading string `json:"reading"`
		Value   int    `json:"value"`
	}
	_ = json.Unmarshal(payload, &row)
	if row.Value < 0 {
		return http.StatusUnprocessableEntity
	}
	if _, err := db.Exec("insert into readings (id, reading, value) values (?, ?, ?) on conflict (id) do update set times = times + 1", id, row.Reading, row.Value); err != nil {
		return http.StatusServiceUnavailable
	}
	return http.StatusAccepted
}

func (s *standInSite) tell(id, suffix, list string) int {
	seed, _ := os.ReadFile(filepath.Join(s.dir, "central.seed.yaml"))
	port := regexp.MustCompile(`port: (\d+)`).FindStringSubmatch(string(seed))[1]
	to := []string{"jane@plant.example", "john@plant.example"}
	if list == "formers" {
		to = []string{"nobody@plant.example"}
	}
	err := smtp.SendMail("127.0.0.1:"+port, nil, "alarm@plant.example", to,
		fmt.Appendf(nil, "Message-Id: <%s%s@plant.example>\r\nX-Notification-Id: %s\r\n\r\nIt is full.\r\n", id, suffix, id))
	switch {
	case err == nil:
		return http.StatusAccepted
	case strings.HasPrefix(err.Error(), "550"):
		return http.StatusUnprocessableEntity
	}
	return http.StatusServiceUnavailable
}

// post returns the status, or 0.
func post(url, key, body string) int {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return 0
	}
	req.Header.Set("Idempotency-Key", key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}
