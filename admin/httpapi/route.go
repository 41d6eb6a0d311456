package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/internal/gate"
)

// route describes one operation for the router, the token check and the OpenAPI document.
type route struct {
	method, path  string
	id            string // operation id
	tag           string
	summary       string
	description   string
	right         api.Right
	portal        api.Right           // that a subscriber needs instead; empty: the route is not for subscribers
	scoped        bool                // it keeps to the caller's scope; any other refuses a caller who has one
	status        int                 // of success; zero: 200
	problems      map[api.Sort]string // refusals in addition to those of every route
	request       reflect.Type        // of its JSON body; nil: it has no body
	bodyRequired  bool
	bodyLimit     int64 // bytes; zero: smallBody
	requestSample any
	slow          bool // the answer may take longer than the server's deadline
	sends         bool // the journal has the message that it enqueues, not the call
	content       bool // it reads content: a GET that the journal has all the same (AU-09)
}

// answer is a complete answer with status 200, or with the route's status.
type answer[T any] struct{ Body T }

func answerOf[T any](body T, err error) (*answer[T], error) {
	if err != nil {
		return nil, err
	}
	return &answer[T]{body}, nil
}

// WithBody is embedded in the input of routes that take a body.
type WithBody struct{ Content body }

func (c *WithBody) body() *body { return &c.Content }

// WithTrace is embedded in the input of routes that send something. Its headers are those of the W3C Trace
// Context. What is wrong in them is no reason to refuse a request.
type WithTrace struct {
	TraceParent string `header:"traceparent" doc:"The trace that the request is a part of (W3C Trace Context). It is passed on to the receiver. One that is not valid is left out."`
	TraceState  string `header:"tracestate" doc:"Goes with traceparent."`
}

func (t *WithTrace) trace(ctx context.Context) context.Context {
	return admin.Within(ctx, holdfast.ParseTrace(t.TraceParent, t.TraceState))
}

// asked registers a route that takes a body. wrong holds the faults that the reader of the body found; the
// handler reports them together with its own.
func asked[In, Req, Out any, P interface {
	*In
	body() *body
}](b *builder, r route, h func(ctx context.Context, in *In, req *Req, wrong []api.Fault) (*Out, error),
) {
	r.request = reflect.TypeFor[Req]()
	handle(b, r, func(ctx context.Context, in *In) (*Out, error) {
		var req Req
		wrong, p := P(in).body().decode(&req)
		if p != nil {
			return nil, p
		}
		return h(ctx, in, &req, wrong)
	})
}

// handle registers a route. huma reads and checks In's parameters; type body reads its body.
func handle[In, Out any](b *builder, r route, h func(context.Context, *In) (*Out, error)) {
	if !r.right.Known() {
		panic("httpapi: " + r.id + " needs no right, and would be open to everybody")
	}
	limit := r.bodyLimit
	if limit == 0 {
		limit = smallBody
	}
	op := huma.Operation{
		Method: r.method, Path: r.path, OperationID: r.id, Tags: []string{r.tag},
		Summary: r.summary, Description: r.description,
		DefaultStatus: r.status, MaxBodyBytes: limit,
		Security:   byToken(),
		Extensions: map[string]any{"x-right": r.right, "x-scoped": r.scoped, "x-audited": r.audited()},
		Responses:  b.responses(r),
	}
	if r.portal != "" {
		op.Extensions["x-portal"] = r.portal
	}
	answer, subject := h, subjectOf[In]()
	h = func(ctx context.Context, in *In) (*Out, error) {
		began := time.Now()
		out, err := answer(ctx, in)
		detail, worth := detailOf(out, cmp.Or(r.status, http.StatusOK), err, time.Since(began))
		reader, reads := any(in).(contentReader)
		if worth && (r.audited() || reads && reader.readsContent()) || admin.IsDenied(err) {
			_ = b.Called(ctx, r.id, subject(in), err, detail...) // it is logged, and changes no answer
		}
		return out, err
	}
	b.adding = gate.Route{Operation: r.id, Right: r.right, Portal: r.portal, Scoped: r.scoped, Long: r.slow, MaxBody: limit}
	huma.Register(b.api, op, h)
	// Set this afterwards: if huma saw a schema of the body, it would read, check and decode the body too.
	if r.request != nil {
		b.strict[r.request.Name()] = true
		registered := b.operation(r.method, r.path)
		registered.RequestBody = &huma.RequestBody{
			Required: r.bodyRequired,
			Content: map[string]*huma.MediaType{"application/json": {
				Schema: b.schema(r.request), Example: r.requestSample,
			}},
		}
	}
}

// audited reports whether the journal has each call of the route. Otherwise it has what the call did.
func (r *route) audited() bool { return r.content || r.method != http.MethodGet && !r.sends }

// contentReader is the input of a route that reads content only for some calls.
type contentReader interface{ readsContent() bool }

// detailOf returns what the journal says about a call beside its result. A page without content is not
// worth an entry: programs ask for one again and again.
func detailOf(out any, status int, err error, took time.Duration) (detail []any, worth bool) {
	if err != nil {
		status = http.StatusInternalServerError
		if p, ok := errors.AsType[*api.Problem](err); ok {
			status = p.Status
		}
		out = nil
	}
	detail = []any{"status", status, "tookUs", took.Microseconds()}
	switch out := out.(type) {
	case *answer[api.KeptPage]:
		return append(detail, "rows", len(out.Body.Messages)), len(out.Body.Messages) > 0
	case *answer[api.AuditPage]:
		detail = append(detail, "rows", len(out.Body.Records), "filter", out.Body.Filter)
	}
	return detail, true
}

// subjectOf returns a function that names the subject of a request: its path's parameters.
func subjectOf[In any]() func(in *In) string {
	var fields [][]int
	for _, f := range reflect.VisibleFields(reflect.TypeFor[In]()) {
		if f.Tag.Get("path") != "" {
			fields = append(fields, f.Index)
		}
	}
	return func(in *In) string {
		var parts []string
		for _, at := range fields {
			parts = append(parts, fmt.Sprint(reflect.ValueOf(in).Elem().FieldByIndex(at)))
		}
		return strings.Join(parts, "/")
	}
}

// byToken says that a token may be needed; the node's settings decide whether it is. x-right says which right
// it needs, since the scopes of a bearer token mean nothing to OpenAPI.
func byToken() []map[string][]string { return []map[string][]string{{}, {"token": {}}} }

func (b *builder) schema(t reflect.Type) *huma.Schema {
	return b.api.OpenAPI().Components.Schemas.Schema(t, true, t.Name())
}

func (b *builder) operation(method, path string) *huma.Operation {
	item := b.api.OpenAPI().Paths[path]
	switch method {
	case http.MethodPost:
		return item.Post
	case http.MethodPut:
		return item.Put
	case http.MethodDelete:
		return item.Delete
	}
	return item.Get
}

// responses documents the answers of a route other than success.
func (b *builder) responses(r route) map[string]*huma.Response {
	all := map[string]*huma.Response{}
	texts := map[int][]string{}
	add := func(k api.Sort, text string) {
		texts[k.Status()] = append(texts[k.Status()], text)
	}
	for k, text := range r.problems {
		add(k, text)
	}
	add(api.Unauthorized, "The token is missing or unknown.")
	add(api.RoleLacking, lacks(&r))
	add(api.TooMany, "Too many unknown tokens came from this address; Retry-After says how long to wait.")
	add(api.Busy, "The node has too many requests in hand; nothing was done.")
	add(api.Unavailable, "The store is closed; send the same request again later.")
	add(api.Internal, "The node failed; its log says why.")
	if r.request != nil {
		add(api.Unreadable, "The body is not a JSON object.")
		add(api.MediaType, "The content type must be application/json.")
		add(api.TimedOut, "The body did not arrive in time.")
		if _, ok := r.problems[api.TooLarge]; !ok {
			add(api.TooLarge, "The body is larger than this route takes.")
		}
	}
	if _, ok := r.problems[api.Invalid]; !ok {
		add(api.Invalid, "A parameter or field is wrong or unknown; errors names each.")
	}
	for status, lines := range texts {
		slices.Sort(lines)
		all[strconv.Itoa(status)] = b.problem(strings.Join(lines, " "))
	}
	return all
}

// lacks says when a caller is refused.
func lacks(r *route) string {
	switch {
	case r.right == api.AnyToken:
		return "The request comes from a web page of another site."
	case r.scoped:
		return fmt.Sprintf("The token does not have the right %s, or not for this; or the request comes from a web page of another site.", r.right)
	}
	return fmt.Sprintf("The token does not have the right %s, or only for some sites, destinations or topics; or the request comes from a web page of another site.", r.right)
}

// problem documents an answer that is a problem document.
func (b *builder) problem(text string) *huma.Response {
	return &huma.Response{Description: text, Content: map[string]*huma.MediaType{api.ProblemType: {Schema: b.schema(reflect.TypeFor[api.Problem]())}}}
}

// builder adds routes to the API while it is built. huma sees it as a mux.
type builder struct {
	*admin.Service
	api    huma.API
	strict map[string]bool // schemas of requests, which allow no other fields
	routes []gate.Route
	adding gate.Route // properties of the route that huma is given
}

func newBuilder(s *admin.Service) *builder {
	b := &builder{Service: s, strict: map[string]bool{}}
	b.api = humago.New(b, config(s.Program()))
	return b
}

// HandleFunc takes a route from huma: the one that handle gives it, and no other.
func (b *builder) HandleFunc(pattern string, handler func(http.ResponseWriter, *http.Request)) {
	r := b.adding
	b.adding = gate.Route{}
	if r.Right == "" {
		panic("httpapi: huma adds " + pattern + ", which needs no right")
	}
	r.Pattern, r.Handler = pattern, http.HandlerFunc(handler)
	b.routes = append(b.routes, r)
}

// ServeHTTP makes builder a mux. It is never called: the gate has the mux.
func (*builder) ServeHTTP(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }

// config is a huma configuration without documentation routes. JSON and problems have our form.
func config(version string) huma.Config {
	format := huma.Format{Marshal: writeJSON, Unmarshal: json.Unmarshal}
	c := huma.DefaultConfig("Holdfast operator API", version)
	c.OpenAPIPath, c.DocsPath, c.SchemasPath = "", "", ""
	c.CreateHooks = nil // adds $schema to each answer
	c.Formats = map[string]huma.Format{"application/json": format, "json": format}
	c.RejectUnknownQueryParameters = true
	c.Transformers = []huma.Transformer{translate}
	return c
}

// verbatim is an answer that writes its own JSON.
type verbatim interface{ AppendJSON() ([]byte, error) }

// writeJSON writes an answer. It reports no error if the client is gone: nobody can be told, and huma would panic.
func writeJSON(w io.Writer, v any) error {
	if own, ok := v.(verbatim); ok {
		data, err := own.AppendJSON()
		if err != nil {
			return err
		}
		_, _ = w.Write(append(data, '\n'))
		return nil
	}
	var b bytes.Buffer // all or nothing: an error must not leave half an answer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, _ = w.Write(b.Bytes())
	return nil
}

// translate turns huma's own refusals into ours. All of them are about parameters.
func translate(ctx huma.Context, _ string, v any) (any, error) {
	e, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	if e.Status != http.StatusUnprocessableEntity {
		return api.Internal.Problem("the node failed; its log says why"), nil
	}
	faults := make([]api.Fault, 0, len(e.Errors))
	for _, d := range e.Errors {
		_, field, _ := strings.Cut(d.Location, ".")
		f := api.Fault{Field: api.Clip(field), Problem: "is wrong: " + d.Message}
		if d.Value != nil {
			f.Value = api.Clip(fmt.Sprint(d.Value))
		}
		switch {
		case d.Message == "unknown query parameter":
			f.Problem = "is not a parameter of this route" + parameters(ctx.Operation())
		case d.Message == "invalid integer":
			f.Problem = "must be a whole number"
		case strings.HasPrefix(d.Message, "expected "):
			f.Problem = bounds(ctx.Operation(), field, d.Message)
		}
		faults = append(faults, f)
	}
	slices.SortStableFunc(faults, func(a, b api.Fault) int { return strings.Compare(a.Field, b.Field) })
	return api.Faulty(faults...), nil
}

// bounds returns the limits of a parameter, or its values, in words.
func bounds(op *huma.Operation, name, message string) string {
	at := slices.IndexFunc(op.Parameters, func(p *huma.Param) bool { return p.Name == name })
	if at < 0 || op.Parameters[at].Schema == nil {
		return "is not what is " + message
	}
	switch s := op.Parameters[at].Schema; {
	case s.Minimum != nil && s.Maximum != nil:
		return fmt.Sprintf("must be from %.0f to %.0f", *s.Minimum, *s.Maximum)
	case s.Minimum != nil:
		return fmt.Sprintf("must be %.0f or more", *s.Minimum)
	case len(s.Enum) > 0:
		return "must be one of " + strings.Trim(strings.ReplaceAll(fmt.Sprint(s.Enum), " ", ", "), "[]")
	case s.MaxLength != nil:
		return fmt.Sprintf("must have at most %d characters", *s.MaxLength)
	}
	return "is not what is " + message
}

func parameters(op *huma.Operation) string {
	var names []string
	for _, p := range op.Parameters {
		if p.In == "query" {
			names = append(names, p.Name)
		}
	}
	if len(names) == 0 {
		return "; it has none"
	}
	return "; there are " + strings.Join(names, ", ")
}
