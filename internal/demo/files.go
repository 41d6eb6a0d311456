package demo

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrFolder is the error of a folder in which no demo can begin.
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

// writeFiles writes the configuration of both nodes and the secret that they
// share, and returns where the configurations are.
func writeFiles(dir, networkURL, programURL string) (sender, receiver string, err error) {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	files := map[string]string{
		"secret": base64.StdEncoding.EncodeToString(secret) + "\n",
		"sender.yaml": fmt.Sprintf(`# The network between the nodes, which loses acks, is the demo's.
node: {id: sender}
listen: 127.0.0.1:0
data: sender
log: {level: error}
stop: 5s
destinations:
  receiver:
    url: %s
    secret: {file: secret}
    timeout: 10s
    retry: {policy: exponential, base: 50ms, cap: 500ms, jitter: 50ms, retries: 0}
`, networkURL),
		"receiver.yaml": fmt.Sprintf(`node: {id: receiver}
listen: 127.0.0.1:0
data: receiver
log: {level: error}
stop: 5s
receive:
  secrets: {sender: {file: secret}}
  endpoints:
    Order: {forward: %s, timeout: 10s}
`, programURL),
	}
	var all []error
	for name, text := range files {
		all = append(all, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return filepath.Join(dir, "sender.yaml"), filepath.Join(dir, "receiver.yaml"), errors.Join(all...)
}
