package api

import (
	"bytes"
	"encoding/json"
	"time"
)

// KeptMessage is a received message that waits to be fetched.
type KeptMessage struct {
	ID            string            `json:"id"`
	Source        string            `json:"source" doc:"Who sent it; id and source together name it."`
	Endpoint      string            `json:"endpoint"`
	Kind          string            `json:"kind" enum:"Signal,Command,PushCall,Response"`
	CorrelationID string            `json:"correlationId,omitempty"`
	Headers       map[string]string `json:"headers,omitempty"`
	Received      time.Time         `json:"received"`
	Damaged       bool              `json:"damaged,omitempty" doc:"The stored content is not what was accepted; payload and headers are left out. It can be marked done."`
	PayloadBase64 string            `json:"payloadBase64,omitempty" doc:"The payload, if it is not JSON."`
	Payload       json.RawMessage   `json:"payload,omitempty" doc:"The payload, byte by byte as it was received."`
}

// KeptPage is one page of received messages.
type KeptPage struct {
	Messages []KeptMessage `json:"messages" nullable:"false" doc:"Oldest first."`
	Next     int64         `json:"next,omitempty" doc:"Pass it as after to get the next page; absent: no more."`
}

// DoneRequest is what POST /v1/inbox/{id}/done takes.
type DoneRequest struct {
	Source   string          `json:"source,omitempty" doc:"Who sent the message. May be absent if only one waiting message has this id."`
	Response json.RawMessage `json:"response,omitempty" doc:"Any JSON: the answer to a repeat of the message."`
}

// Done is the answer after a message was marked done.
type Done struct {
	ID     string `json:"id"`
	Source string `json:"source"`
	Done   bool   `json:"done" doc:"Always true."`
}

// AppendJSON writes the page as JSON, and keeps the payloads' bytes.
func (p KeptPage) AppendJSON() ([]byte, error) {
	list := bytes.NewBufferString("[")
	for i, m := range p.Messages {
		raw := m.Payload
		m.Payload = nil
		data, err := Spliced(m, "payload", raw)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			list.WriteByte(',')
		}
		list.Write(data)
	}
	list.WriteByte(']')
	rest := struct {
		Next int64 `json:"next,omitempty"`
	}{p.Next}
	return Spliced(rest, "messages", list.Bytes())
}
