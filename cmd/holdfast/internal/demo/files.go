package demo

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrFolder says that no demo can begin in the folder.
var ErrFolder = errors.New("the folder must be new or empty")

// makeFolder returns the folder of the demo's files, which is empty.
func makeFolder(keep string) (string, error) {
	if keep == "" {
		dir, err := os.MkdirTemp("", "holdfast-demo-")
		if err != nil {
			return "", fmt.Errorf("make a temporary folder: %w", err)
		}
		return dir, nil
	}
	dir, err := filepath.Abs(keep)
	if err != nil {
		return "", fmt.Errorf("folder %s: %w", keep, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make folder %s: %w", dir, err)
	}
	found, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("read folder %s: %w", dir, err)
	}
	if len(found) > 0 {
		return "", fmt.Errorf("keep files in %s: %w, and it holds %s", dir, ErrFolder, found[0].Name())
	}
	return dir, nil
}

// The lists of central.
const (
	operators = "operators"
	formers   = "formers" // nobody has this address any more
)

// places tells nodes where the demo's own servers are.
type places struct {
	network, program, target string // URLs
	mail                     int    // a port
}

const centralFile = `node: {id: central}
role: central
listen: 127.0.0.1:0
data: central
log: {level: error}
stop: 5s
notifications: {seed: central.seed.yaml}
receive:
  secrets: {plant-1: {file: secret}, plant-2: {file: secret}}
  endpoints:
    Order: {forward: %s, timeout: 10s}
`

const seedFile = `channels:
  mail:
    kind: email
    settings: {host: 127.0.0.1, port: %d, tls: none, from: alarm@plant.example}
    retry: {attempts: 1000, interval: 200ms}
lists:
  operators:
    recipients: [{channel: mail, address: %s}, {channel: mail, address: %s}]
  formers:
    description: nobody has the address any more
    recipients: [{channel: mail, address: %s}]
`

const siteFile = `# The network between sites and central, which loses acks, is the demo's.
node: {id: %[1]s}
role: site
listen: 127.0.0.1:0
data: %[1]s
log: {level: error}
stop: 5s
central: {url: "%[2]s", credential: %[1]s.credential, timeout: 10s}
destinations:
  orders:
    url: %[2]s
    secret: {file: secret}
    timeout: 10s
    retry: {policy: exponential, base: 50ms, cap: 500ms, jitter: 50ms, retries: 0}
  parts:
    call: {url: "%[3]s"}
    timeout: 5s
    retry: {policy: exponential, base: 50ms, cap: 500ms, jitter: 50ms, retries: 0}
  readings:
    write:
      driver: sqlite
      dsn: {file: readings.dsn}
      statements: {Keep: "%[4]s"}
      types: {reading: text, value: integer}
    timeout: 2s
    concurrency: 2
    retry: {policy: exponential, base: 50ms, cap: 500ms, jitter: 50ms, retries: 0}
`

// writeFiles writes the configurations, and the secret that the nodes share.
func writeFiles(dir string, p places) error {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	files := map[string]string{
		"secret":            base64.StdEncoding.EncodeToString(secret) + "\n",
		"central.yaml":      fmt.Sprintf(centralFile, p.program),
		"central.seed.yaml": fmt.Sprintf(seedFile, p.mail, jane, john, nobody),
	}
	for _, name := range sites {
		files[name+".yaml"] = fmt.Sprintf(siteFile, name, p.network, p.target, statement)
	}
	var all []error
	for name, text := range files {
		all = append(all, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return errors.Join(all...)
}
