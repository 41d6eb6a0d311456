package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// smallDisk mounts a file system that a test can fill.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	folder := t.TempDir()
	err := unix.Mount("none", folder, "tmpfs", 0, "size="+size)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		t.Skipf("mount a small disk: %v; it takes root", err)
	}
	if err != nil {
		t.Fatalf("mount a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(folder, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return folder
}

// fill writes to a file until nothing fits any more.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("fill the disk: %v", err)
	}
}

// exchange makes one request and returns the answer.
func exchange(t *testing.T, method, url, body string) (status int, kind, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header.Get("Content-Type"), string(b)
}

// F: a node whose disk is full refuses what is new and says so everywhere,
// records what it delivers all the same, survives kill -9 and a start in that
// state, and goes on by itself when there is room.
//
// SF-08; edge case 52.
func TestNodeOnAFullDisk(t *testing.T) {
	disk := smallDisk(t, "8m")
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	write(t, secret, base64.StdEncoding.EncodeToString([]byte(rigSecret)))
	peer := &child{t: t, address: freeAddress(t), data: filepath.Join(dir, "peer")} // not there at first
	peer.args = serveArgs(t, dir, "peer", fmt.Sprintf(`
node: {id: peer}
listen: %s
data: %s
receive:
  secrets: {node: {file: %s}}
  endpoints: {E: {keep: true}}
`, peer.address, peer.data, secret))
	node := &child{t: t, address: freeAddress(t), data: filepath.Join(disk, "data")}
	node.args = serveArgs(t, dir, "node", fmt.Sprintf(`
node: {id: node}
listen: %s
data: %s
limits: {reserve: 1MiB}
destinations:
  peer: {url: "%s", secret: {file: %s}, retry: {policy: fixed, interval: 1s, jitter: 1ms, retries: 0}}
`, node.address, node.data, peer.url(), secret))
	node.start()
	t.Cleanup(node.kill)
	node.ready()
	post := func(id string, size int) (int, string, string) {
		return exchange(t, http.MethodPost, node.url()+"/v1/messages",
			fmt.Sprintf(`{"id": %q, "destination": "peer", "endpoint": "E", "payload": %q}`, id, strings.Repeat("x", size)))
	}
	accepted := 0
	for range 10 {
		if status, _, text := post(fmt.Sprint("m", accepted), 100); status != http.StatusAccepted && status != http.StatusCreated && status != http.StatusOK {
			t.Fatalf("%d %s", status, text)
		}
		accepted++
	}
	filler := filepath.Join(disk, "filler")
	fill(t, filler)
	refusedFull := func() {
		t.Helper()
		for n := 0; ; n++ {
			status, kind, text := post(fmt.Sprint("m", accepted), 20<<10)
			if status == http.StatusInsufficientStorage {
				if kind != "application/problem+json" || !strings.Contains(text, "free some space") {
					t.Errorf("refused with %s: %s", kind, text)
				}
				break
			}
			if accepted++; status >= 300 || n > 1000 {
				t.Fatalf("%d %s", status, text)
			}
		}
		if status, _, text := exchange(t, http.MethodGet, node.url()+"/readyz", ""); status != http.StatusServiceUnavailable || !strings.Contains(text, "disk full") {
			t.Errorf("/readyz: %d %s", status, text)
		}
		status, _, text := exchange(t, http.MethodGet, node.url()+"/_rf/health", "")
		if status != http.StatusOK || !strings.Contains(text, `"degraded"`) || !strings.Contains(text, "free some space") || !strings.Contains(text, "set aside") {
			t.Errorf("health: %d %s", status, text)
		}
		if _, _, text := exchange(t, http.MethodGet, node.url()+"/metrics", ""); !strings.Contains(text, "\nholdfast_disk_free_bytes ") {
			t.Error("no metric tells the free bytes")
		}
	}
	refusedFull()
	node.kill()
	node.start()
	node.ready()
	refusedFull()
	peer.start()
	t.Cleanup(peer.kill)
	pending := func() bool {
		_, _, text := exchange(t, http.MethodGet, node.url()+"/metrics", "")
		return !strings.Contains(text, "\nrf_outbox_pending_count 0\n")
	}
	eventually(t, "outcomes recorded on a full disk", func() bool { return !pending() })
	delivered := func() (n int) {
		for i := range accepted {
			_, _, text := exchange(t, http.MethodGet, fmt.Sprintf("%s/v1/messages/m%d", node.url(), i), "")
			if strings.Contains(strings.ReplaceAll(text, " ", ""), `"state":"delivered"`) {
				n++
			}
		}
		return n
	}
	if n := delivered(); n != accepted {
		t.Errorf("%d of %d accepted messages were delivered and recorded\n%s", n, accepted, node.tail())
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	eventually(t, "ready again", func() bool {
		status, _, _ := exchange(t, http.MethodGet, node.url()+"/readyz", "")
		return status == http.StatusOK
	})
	if status, _, text := post("again", 20<<10); status >= 300 {
		t.Errorf("with room again: %d %s", status, text)
	}
	if err := node.end(); err != nil {
		t.Errorf("stop: %v\n%s", err, node.tail())
	}
}
