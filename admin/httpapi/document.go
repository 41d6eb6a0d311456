package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// document completes the OpenAPI document and serves it. It writes the text at the first request: that costs
// more than the rest of a start.
func (b *builder) document() http.Handler {
	doc := b.api.OpenAPI()
	doc.Info.Description = "For programs and people: send messages through a Holdfast node, see what became of them, decide about those that wait. " +
		"Every refusal is a problem document (RFC 9457) that names field, value and what to do. Durations are texts such as 90s, 24h, 7d or 2w; times are RFC 3339 in UTC."
	doc.Info.License = &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"}
	doc.Info.Contact = &huma.Contact{Name: "Holdfast", URL: "https://github.com/holdfast-mq/holdfast"}
	doc.Servers = []*huma.Server{{URL: "/", Description: "The node that serves this document."}}
	doc.Tags = []*huma.Tag{
		{Name: "messages", Description: "The outbox: what is to be sent, and what became of it."},
		{Name: "operations", Description: "What became of calls of foreign systems and writes to foreign databases."},
		{Name: "inbox", Description: "Received messages that wait to be fetched."},
		{Name: "destinations", Description: "Where messages go, and how each destination fares."},
		{Name: "notifications", Description: "What people are told, and whether it reached them. A node that delivers no notifications answers unsupported. This also holds for channels and lists."},
		{Name: "channels", Description: "How notifications reach people: mail servers, chat rooms, webhooks."},
		{Name: "events", Description: "What programs publish, who has subscribed to it, and what became of it. A node that keeps no topics and subscriptions answers unsupported."},
		{Name: "lists", Description: "Who gets a notification."},
		{Name: "backups", Description: "Copies of the database."},
		{Name: "tokens", Description: "Who may use this API."},
		{Name: "keys", Description: "What secrets in the database are sealed with. Sites do not have these routes."},
		{Name: "journal", Description: "Who follows what happens in the store."},
		{Name: "sites", Description: "Sites that forward to this central node: who they are, and what waits there. Only a central node has these routes."},
		{Name: "activity", Description: "What happened to messages, and who did what about them."},
		{Name: "audit", Description: "What has happened on the node, and who did it."},
		{Name: "diagnostics", Description: "Health and numbers."},
		{Name: "node", Description: "Routes of the same listener that are not part of the operator API."},
	}
	doc.Components.SecuritySchemes = map[string]*huma.SecurityScheme{"token": {
		Type: "http", Scheme: "bearer",
		Description: "A token of POST /v1/tokens. A listener on the loopback may ask for none. A token is a set of rights: read, send, operate, audit-read, audit-export, audit-hold, admin; roles name some sets. A subscriber has portal, or portal-pause with it, about its own subscriptions: x-portal names which of them an operation needs; it has no other. x-right of an operation names the right that it needs; any is what every token has. A token may be for some sites, destinations or topics only: then it is good for the operations with x-scoped, which show it no more than that.",
	}}
	// Register leaves these behind. Our routes answer with Problem.
	schemas := doc.Components.Schemas.Map()
	delete(schemas, "ErrorModel")
	delete(schemas, "ErrorDetail")
	for name, schema := range schemas {
		if !b.strict[name] {
			schema.AdditionalProperties = nil // answers may grow
		}
	}

	text := sync.OnceValues(func() ([]byte, error) {
		var text bytes.Buffer
		enc := json.NewEncoder(&text)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		err := enc.Encode(doc)
		return text.Bytes(), err
	})
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		b, err := text()
		if err != nil {
			panic(fmt.Errorf("encode the OpenAPI document: %w", err)) // a bug: the gate logs it and answers
		}
		w.Header().Set("Content-Type", "application/openapi+json")
		_, _ = w.Write(b) // an error here means that the client is gone
	})
}

// receive is the route for messages of peers, if a node has it.
const receive = http.MethodPost + " /_rf/receive"

// others documents routes that other packages serve on the same listener.
func others(b *builder, receives bool) {
	plain := func(text string) *huma.Response {
		return &huma.Response{Description: text, Content: map[string]*huma.MediaType{"text/plain": {Schema: &huma.Schema{Type: huma.TypeString}}}}
	}
	if receives {
		b.receiving()
	}
	b.open(http.MethodGet, "/healthz", "alive", "Is the process alive?", "For supervisors that restart it. No token is needed.",
		map[int]*huma.Response{http.StatusOK: plain("It is.")})
	b.open(http.MethodGet, "/readyz", "ready", "Can the node take messages?", "For load balancers and others that send it requests. No token is needed.",
		map[int]*huma.Response{
			http.StatusOK:                 plain("It can."),
			http.StatusServiceUnavailable: plain("Not now: it is starting or stopping, or cannot store."),
		})
	b.open(http.MethodGet, "/openapi.json", "openapi", "This document", "OpenAPI 3.1. No token is needed.",
		map[int]*huma.Response{http.StatusOK: {
			Description: "The document.",
			Content:     map[string]*huma.MediaType{"application/openapi+json": {Schema: &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}}},
		}})
	b.other(http.MethodGet, "/metrics", "metrics", "Metrics", "In the text format of Prometheus.",
		map[int]*huma.Response{
			http.StatusOK:              plain("The metrics."),
			http.StatusUnauthorized:    b.problem("The token is missing or unknown."),
			http.StatusForbidden:       b.problem("The node does not answer to this name without a token."),
			http.StatusTooManyRequests: b.problem("Too many unknown tokens came from this address; Retry-After says how long to wait."),
		})
	metrics := b.operation(http.MethodGet, "/metrics")
	metrics.Security, metrics.Extensions = byToken(), map[string]any{"x-right": api.Read, "x-scoped": false}
}

// receiving documents the route for messages of peers.
func (b *builder) receiving() {
	b.other(http.MethodPost, "/_rf/receive", "receive", "Receive messages of a peer",
		"The wire protocol between nodes: one envelope or a batch of them, signed by the peer's secret rather than by a token. The guide on the wire protocol describes it. "+
			"Only a node whose configuration names a source, in receive.secrets, has this route.",
		map[int]*huma.Response{
			http.StatusOK:           {Description: "Each message is stored or done; the answer names each."},
			http.StatusUnauthorized: {Description: "The signature is missing, wrong or too old; nothing was written."},
		})
	b.operation(http.MethodPost, "/_rf/receive").RequestBody = &huma.RequestBody{
		Required: true, Content: map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}}},
	}
}

// open documents a route that needs no token.
func (b *builder) open(method, path, id, summary, description string, responses map[int]*huma.Response) {
	responses[http.StatusForbidden] = b.problem("If no token is needed, the node only answers requests to names of its own machine.")
	b.other(method, path, id, summary, description, responses)
}

func (b *builder) other(method, path, id, summary, description string, responses map[int]*huma.Response) {
	op := &huma.Operation{
		Method: method, Path: path, OperationID: id, Summary: summary, Description: description,
		Tags: []string{"node"}, Responses: map[string]*huma.Response{}, Security: []map[string][]string{{}},
	}
	for status, r := range responses {
		op.Responses[strconv.Itoa(status)] = r
	}
	b.api.OpenAPI().AddOperation(op)
}
