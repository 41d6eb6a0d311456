package config

import "github.com/holdfast-mq/holdfast/internal/setting"

// Node names this node for its peers.
type Node struct {
	ID     string // its name among the nodes of one store
	Source string // of the messages it sends; empty: ID
}

// Source returns the source of the messages that this node sends.
func (c *Config) Source() string {
	if c.Node.Source != "" {
		return c.Node.Source
	}
	return c.Node.ID
}

// Tokens says who needs a token to call the node.
type Tokens string

// Who needs a token. Signed messages and sites prove their origin otherwise.
const (
	TokensRemote Tokens = "remote" // callers from other machines
	TokensAlways Tokens = "always" // everybody, even on the loopback and a socket
	TokensNever  Tokens = "never"  // nobody: whoever reaches the listener may do everything
)

// TLS names the certificate of the listener: both paths or neither. Changed files are read again.
type TLS struct {
	Cert    string
	Key     string
	Clients string // path of the CAs of sites; sites must then show a certificate; empty: they need none
	AnySite bool   // a certificate need not name the site that shows it
}

// Log says what is logged, and in which form.
type Log struct {
	Level  LogLevel
	Format LogFormat
}

// LogLevel is the lowest level that is logged, in a form that slog.Level reads.
type LogLevel string

// The log levels.
const (
	LogDebug LogLevel = "debug"
	LogInfo  LogLevel = "info"
	LogWarn  LogLevel = "warn"
	LogError LogLevel = "error"
)

// LogFormat is the form of a log line.
type LogFormat string

// The log formats.
const (
	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)

// Durability says when a commit counts as durable.
type Durability string

// The levels of durability.
const (
	Full   Durability = "full"   // after it reached the disk
	Normal Durability = "normal" // may lose the last seconds at a power cut
)

// Limits bounds what the node accepts.
type Limits struct {
	Payload int64 // bytes of one message's payload
	Reserve int64 // bytes of the disk reserved to record outcomes when it is full; 0: none

	Connections int   // at one time; 0: half of the files that the process may have open
	Strangers   int64 // bytes of bodies in hand whose senders are still unknown
	Bodies      int64 // bytes of bodies in hand from senders who may use the API
}

func nodeKeys() setting.Section[Node] {
	return setting.Section[Node]{
		setting.Key("id", func(n *Node) *string { return &n.ID }, setting.Name("shop-12"), "",
			"The node's name. It is the source of its messages, and the name by which peers know it. Set it if host names change, as in containers.").
			Tells("", "the host name in lower case"),
		setting.Maybe("source", func(n *Node) *string { return &n.Source }, setting.Name("shop"),
			"Source of its messages, if that is not the node's name: nodes that share a database send under one source.").
			Tells("", "the value of `node.id`"),
	}
}

func tlsKeys() setting.Section[TLS] {
	return setting.Section[TLS]{
		setting.Maybe("cert", func(t *TLS) *string { return &t.Cert }, setting.File("cert.pem"), "File with the certificate and its chain, PEM."),
		setting.Maybe("key", func(t *TLS) *string { return &t.Key }, setting.File("key.pem"), "File with its private key, PEM."),
		setting.Maybe("clients", func(t *TLS) *string { return &t.Clients }, setting.File("clients-ca.pem"),
			"File with the CAs, PEM, that issue the certificates of sites: each site must then show one (mutual TLS). None: a credential is enough. The certificate must name the site that shows it, as common name or DNS name."),
		setting.Maybe("anySite", func(t *TLS) *bool { return &t.AnySite }, setting.Truth(), "Lets a site show any certificate of these CAs, even one that names another site.").
			Tells("", "`false`"),
	}
}

func logKeys() setting.Section[Log] {
	return setting.Section[Log]{
		setting.Key("level", func(g *Log) *LogLevel { return &g.Level }, setting.Word(LogInfo, LogDebug, LogInfo, LogWarn, LogError), LogInfo, "The lowest level that is written."),
		setting.Key("format", func(g *Log) *LogFormat { return &g.Format }, setting.Word(LogJSON, LogText, LogJSON), LogText, "Form of a line."),
	}
}

// Bounds of what is in hand at one time.
const (
	leastInHand = setting.Mebibyte
	mostInHand  = 16 << 30
)

func limitKeys() setting.Section[Limits] {
	return setting.Section[Limits]{
		setting.Key("payload", func(m *Limits) *int64 { return &m.Payload }, setting.Size(setting.Kibibyte, 64*setting.Mebibyte, ""), setting.Mebibyte,
			"Largest payload of one message. A larger one is answered with 413."),
		setting.Key("reserve", func(m *Limits) *int64 { return &m.Reserve }, setting.Size(setting.Mebibyte, 1<<30, "none"), 16*setting.Mebibyte,
			"How much disk space is reserved in a file next to the database, so that outcomes can still be recorded when the disk is full.").
			Only(func(root any, _ *Limits) bool { return root.(*Config).Store.IsZero() }),
		setting.Key("connections", func(m *Limits) *int { return &m.Connections }, setting.Count(16, 100_000, "half of the files that the process may have open", "1000"), 0,
			"Connections at one time. An eighth of them, at most 64, is reserved for this machine. If there are more, the connection that has been idle for longest is closed, of the address with the most.").
			Tells("`16` to `100000`, or `0` for half of the files that the process may have open, 4096 at most", ""),
		setting.Key("strangers", func(m *Limits) *int64 { return &m.Strangers }, setting.Size(leastInHand, mostInHand, ""), 16*setting.Mebibyte,
			"Memory for the bodies of senders that are not known yet; one address gets at most three quarters of it. It is at least twice `limits.payload`, whatever is written."),
		setting.Key("bodies", func(m *Limits) *int64 { return &m.Bodies }, setting.Size(leastInHand, mostInHand, ""), 64*setting.Mebibyte,
			"Memory for the bodies of requests to the API. If it is full, a request waits up to 5 s, and is then told to come again (503)."),
	}
}
