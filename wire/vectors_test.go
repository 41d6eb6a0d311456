package wire_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/wire"
)

var update = flag.Bool("update", false, "write testdata/vectors.json anew")

// vectors is a file for implementers in any language.
type vectors struct {
	About   []string       `json:"about"`
	Accept  []acceptVector `json:"accept"`
	Refuse  []refuseVector `json:"refuse"`
	Batch   batchVector    `json:"batch"`
	Replies []replyVector  `json:"replies"`
}

type acceptVector struct {
	Name          string `json:"name"`
	Version       string `json:"version"` // v1 or v2
	SecretBase64  string `json:"secretBase64"`
	KeyID         string `json:"keyId,omitempty"`
	Method        string `json:"method,omitempty"`
	Path          string `json:"path,omitempty"`
	Receiver      string `json:"receiver,omitempty"` // its name; absent: whoever
	PayloadSHA256 string `json:"payloadSha256"`
	InputHex      string `json:"inputHex"`  // what the HMAC is computed of
	Signature     string `json:"signature"` // rf-hmac
	Envelope      string `json:"envelope"`
}

type refuseVector struct {
	Name         string `json:"name"`
	SecretBase64 string `json:"secretBase64"`
	Receiver     string `json:"receiver,omitempty"` // its name; absent: whoever
	Now          string `json:"now"`                // the verifier's clock
	Because      string `json:"because"`
	Envelope     string `json:"envelope"`
}

type batchVector struct {
	Envelopes []string `json:"envelopes"`
	Body      string   `json:"body"`
}

type replyVector struct {
	Name           string `json:"name"`
	ResponseBase64 string `json:"responseBase64,omitempty"`
	Acknowledged   bool   `json:"acknowledged"`
	Body           string `json:"body"`
}

const vectorsFile = "testdata/vectors.json"

func TestVectors(t *testing.T) {
	t.Parallel()
	if *update {
		writeVectors(t)
	}
	data, err := os.ReadFile(vectorsFile)
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	for _, a := range v.Accept {
		t.Run(a.Name, func(t *testing.T) { t.Parallel(); checkAccept(t, a) })
	}
	for _, r := range v.Refuse {
		t.Run(r.Name, func(t *testing.T) { t.Parallel(); checkRefuse(t, r) })
	}
	t.Run("batch", func(t *testing.T) {
		t.Parallel()
		frames, err := wire.Frames([]byte(v.Batch.Body), len(v.Batch.Envelopes))
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range frames {
			if string(f) != v.Batch.Envelopes[i] {
				t.Errorf("frame %d: got %s, want %s", i, f, v.Batch.Envelopes[i])
			}
		}
	})
	for _, r := range v.Replies {
		t.Run(r.Name, func(t *testing.T) {
			t.Parallel()
			got := reply(t, r.Body)
			want, err := base64.StdEncoding.DecodeString(r.ResponseBase64)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Response, want) || got.Acknowledged != r.Acknowledged {
				t.Errorf("got %q, %v; want %q, %v", got.Response, got.Acknowledged, want, r.Acknowledged)
			}
		})
	}
}

func checkAccept(t *testing.T, a acceptVector) {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(a.SecretBase64)
	if err != nil {
		t.Fatal(err)
	}
	// First without our code: what any other program has to compute.
	input, err := hex.DecodeString(a.InputHex)
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(input)
	sum := base64.StdEncoding.EncodeToString(mac.Sum(nil))
	if a.Version == "v2" {
		sum = "v2=" + sum
	}
	if sum != a.Signature {
		t.Errorf("got HMAC %s of the input, want %s", sum, a.Signature)
	}
	s, err := wire.ParseSecret(a.SecretBase64)
	if err != nil {
		t.Fatal(err)
	}
	e := decode(t, []byte(a.Envelope))
	at, err := time.Parse(time.RFC3339, e.Timestamp)
	if err != nil {
		t.Fatal(err)
	}
	v1 := a.Version == "v1"
	if got := hex.EncodeToString(e.SigningInput(v1, a.Path)); got != a.InputHex {
		t.Errorf("got input %s, want %s", got, a.InputHex)
	}
	hash := sha256.Sum256(e.Message.Payload)
	if got := hex.EncodeToString(hash[:]); got != a.PayloadSHA256 {
		t.Errorf("got payload hash %s, want %s", got, a.PayloadSHA256)
	}
	if e.Signature != a.Signature || !v1 && s.ID() != a.KeyID {
		t.Errorf("got signature %s, key id %s; want %s, %s", e.Signature, s.ID(), a.Signature, a.KeyID)
	}
	if err := e.Verify(wire.Check{Secrets: []*wire.Secret{s}, V1: v1, Path: a.Path, Now: at, Names: names(a.Receiver)}); err != nil {
		t.Errorf("got %v, want it accepted", err)
	}
}

// names are those of a receiver.
func names(receiver string) []string {
	if receiver == "" {
		return nil
	}
	return []string{receiver}
}

func checkRefuse(t *testing.T, r refuseVector) {
	t.Helper()
	s, err := wire.ParseSecret(r.SecretBase64)
	if err != nil {
		t.Fatal(err)
	}
	now, err := time.Parse(time.RFC3339, r.Now)
	if err != nil {
		t.Fatal(err)
	}
	e := decode(t, []byte(r.Envelope))
	if err := e.Verify(wire.Check{Secrets: []*wire.Secret{s}, Now: now, Names: names(r.Receiver)}); !errors.Is(err, wire.ErrSignature) {
		t.Errorf("got %v, want a refused signature", err)
	}
}

func TestVectorsAreWhatEncodeWrites(t *testing.T) {
	t.Parallel()
	if *update {
		t.Skip("they are being written")
	}
	data, err := os.ReadFile(vectorsFile)
	if err != nil {
		t.Fatal(err)
	}
	var got vectors
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(makeVectors(t), got); diff != "" {
		t.Errorf("the file differs from what this code makes; if that is meant, every peer changes too (-want +got):\n%s", diff)
	}
}

func writeVectors(tb testing.TB) {
	tb.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(makeVectors(tb)); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(vectorsFile, b.Bytes(), 0o644); err != nil {
		tb.Fatal(err)
	}
}

func makeVectors(tb testing.TB) vectors {
	tb.Helper()
	const key = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	s, err := wire.ParseSecret(key)
	if err != nil {
		tb.Fatal(err)
	}
	base := holdfast.Message{
		ID: "a1b2c3d4-e5f6-7890-abcd-ef1234567890", Source: "inventory-service", Endpoint: "OrderApproved", Kind: holdfast.Signal,
		CorrelationID: "order-42", Payload: []byte(`{"orderId":42}`),
		Attempt: holdfast.Attempt{Number: 1, Cycle: 1, RetryFor: 62500 * time.Millisecond},
	}
	odd := base
	odd.ID, odd.CorrelationID, odd.Kind, odd.OrderingKey = `order"42"`, "", holdfast.Command, "größe"
	odd.Payload = []byte("{ \"text\" : \"<é\\u00e9\\/>\",\n \"n\": 12345678901234567890.10 }")
	odd.Headers = map[string]string{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "Größe": "ü", "empty": ""}
	odd.Attempt = holdfast.Attempt{Number: 7, Cycle: 2, FirstAgo: 90 * time.Second, RetryFor: -1, Forced: true}
	bare := base
	bare.Payload, bare.Attempt = nil, holdfast.Attempt{}

	v := vectors{About: []string{
		"Test vectors of the Holdfast wire protocol; docs/guide/wire-protocol.md explains them.",
		"accept: verify with the secret, at the time of rf-timestamp. inputHex is what the HMAC-SHA256 is computed of.",
		"refuse: v2 only, with this secret, at this time, by a receiver of this name.",
		"batch: the body that holds these envelopes. replies: what a reply's payload is for the sender.",
	}}
	for _, c := range []struct {
		name string
		m    holdfast.Message
	}{{"a first attempt", base}, {"everything that is awkward", odd}, {"as little as possible", bare}} {
		for _, v1 := range []bool{true, false} {
			v.Accept = append(v.Accept, accept(tb, c.name, c.m, wire.Seal{Secret: s, V1: v1, Now: noon}, key))
		}
	}
	meant := accept(tb, "for one receiver", base, wire.Seal{Secret: s, Now: noon, To: "central-a"}, key)
	meant.Receiver = "central-a"
	v.Accept = append(v.Accept, accept(tb, "a probe", bare, wire.Seal{Secret: s, Now: noon, Path: wire.ProbePath}, key), meant)

	signed := v.Accept[1].Envelope
	refused := func(name, because, old, changed, now string) {
		if strings.Count(signed, old) != 1 {
			tb.Fatalf("%s: %s does not stand once in %s", name, old, signed)
		}
		v.Refuse = append(v.Refuse, refuseVector{Name: name, SecretBase64: key, Now: now, Because: because, Envelope: strings.Replace(signed, old, changed, 1)})
	}
	const now = "2026-02-14T12:00:00Z"
	refused("replayed", "rf-timestamp is more than 5 minutes old", `{"messageId"`, `{"messageId"`, "2026-02-14T12:05:01Z")
	refused("of the future", "rf-timestamp is more than 5 minutes ahead", `{"messageId"`, `{"messageId"`, "2026-02-14T11:54:59Z")
	refused("other payload", "the payload's hash differs", `"orderId":42`, `"orderId":43`, now)
	refused("spaces inside the payload", "the payload is hashed as it stands", `"orderId":42`, `"orderId": 42`, now)
	refused("moved boundary", "each field is signed with its length", `service","messageType":"Signal","endpoint":"Order`, `serviceOrd","messageType":"Signal","endpoint":"er`, now)
	refused("forced", "every header is signed", `"headers":{`, `"headers":{"rf-force":"true",`, now)
	v.Refuse = append(v.Refuse, refuseVector{Name: "meant for another", SecretBase64: key, Receiver: "central-b", Now: now, Because: "rf-to names another receiver", Envelope: meant.Envelope})
	refused("v2 stripped to v1", "v1 is not accepted unless the peer is marked", "v2=", "", now)

	v.Batch.Envelopes = []string{v.Accept[1].Envelope, v.Accept[3].Envelope}
	for _, e := range v.Batch.Envelopes {
		v.Batch.Body = string(wire.AppendFrame([]byte(v.Batch.Body), []byte(e)))
	}
	replied := func(name string, receipt holdfast.Receipt, err error) {
		r := wire.ReplyTo(receipt, err)
		v.Replies = append(v.Replies, replyVector{name, base64.StdEncoding.EncodeToString(receipt.Response), r.Acknowledged, string(r.AppendTo(nil))})
	}
	replied("no response", holdfast.Receipt{}, nil)
	replied("a response in JSON", holdfast.Receipt{Response: []byte(`{"reserved": 3}`)}, nil)
	replied("a response in text, of a duplicate", holdfast.Receipt{Response: []byte("done\n"), Duplicate: true}, nil)
	replied("a response in bytes", holdfast.Receipt{Response: []byte{0xff, 0}}, nil)
	replied("the handler failed", holdfast.Receipt{}, errors.New("any"))
	replied("a conflict", holdfast.Receipt{}, holdfast.ErrConflict)
	replied("too busy", holdfast.Receipt{}, &holdfast.Failure{Code: "busy", RetryAfter: 30 * time.Second})
	return v
}

func accept(tb testing.TB, name string, m holdfast.Message, s wire.Seal, key string) acceptVector {
	tb.Helper()
	data := encode(tb, m, s)
	e := decode(tb, data)
	sum := sha256.Sum256(e.Message.Payload)
	a := acceptVector{
		Name: name + ", v2", Version: "v2", SecretBase64: key, KeyID: e.KeyID, Method: wire.Method, Path: wire.ReceivePath,
		PayloadSHA256: hex.EncodeToString(sum[:]), InputHex: hex.EncodeToString(e.SigningInput(s.V1, s.Path)),
		Signature: e.Signature, Envelope: string(data),
	}
	if s.Path != "" {
		a.Path = s.Path
	}
	if s.V1 {
		a.Name, a.Version, a.Method, a.Path = name+", v1", "v1", "", ""
	}
	return a
}
