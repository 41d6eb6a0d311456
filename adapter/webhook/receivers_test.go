package webhook_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/webhook"
)

// startReceiver runs one of the examples of receivers. It returns its URL and the effects that it has,
// which end with the test.
func startReceiver(t *testing.T, name string, args ...string) (url string, effects <-chan string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skip("there is no " + name)
	}
	cmd := exec.CommandContext(t.Context(), name, append(args, "127.0.0.1:0")...)
	cmd.Env, cmd.Stderr = append(os.Environ(), "WEBHOOK_SECRET="+first), os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatalf("it says nothing: %v", cmd.Wait())
	}
	address, is := strings.CutPrefix(lines.Text(), "listening on ")
	if !is {
		t.Fatalf("it says %q", lines.Text())
	}
	all := make(chan string, 100)
	go func() { // it ends with the process
		defer close(all)
		for lines.Scan() {
			all <- lines.Text()
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		for range all { // until its output ends
		}
		_ = cmd.Wait()
	})
	return "http://" + address, all
}

// The receivers of the guide take what we send, also while a secret is replaced; act once for each id;
// and refuse what is forged.
func TestTheReceiversOfTheGuide(t *testing.T) {
	t.Parallel()
	examples := filepath.Join("..", "..", "examples", "receivers")
	for name, start := range map[string]func(t *testing.T) (string, <-chan string){
		"Go": func(t *testing.T) (string, <-chan string) {
			t.Helper()
			program := filepath.Join(t.TempDir(), "receiver")
			build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./"+filepath.Join(examples, "go"))
			if said, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, said)
			}
			return startReceiver(t, program)
		},
		"Python": func(t *testing.T) (string, <-chan string) {
			t.Helper()
			return startReceiver(t, "python3", filepath.Join(examples, "receiver.py"))
		},
		"Node": func(t *testing.T) (string, <-chan string) {
			t.Helper()
			return startReceiver(t, "node", filepath.Join(examples, "receiver.mjs"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, effects := start(t)
			s := sender(t, local())
			send := func(id holdfast.ID, payload string, secrets ...string) int {
				t.Helper()
				target := webhook.Target{URL: url, Timeout: time.Minute}
				for _, secret := range secrets {
					target.Secrets = append(target.Secrets, webhook.Secret{Value: secret})
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				e := s.Try(ctx, &target, &holdfast.Message{ID: id, Payload: []byte(payload)})
				if e.Status == 0 {
					t.Fatal(e.Failure)
				}
				return e.Status
			}
			got := []int{
				send("a", `{"n": 1.0}`, first), send("a", `{"n": 1.0}`, first), // a repeat
				send("b", `{"n":  2}`, second, pair, first), // while it is replaced
				send("c", `{}`, second), send("c", `{}`),    // of somebody else
				send("c", `{"é": 3}`, first),
			}
			if diff := cmp.Diff([]int{204, 204, 204, 401, 401, 204}, got); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
			for _, want := range []string{`a {"n": 1.0}`, `b {"n":  2}`, `c {"é": 3}`} {
				if effect := <-effects; effect != want {
					t.Errorf("got the effect %q, want %q", effect, want)
				}
			}
			if len(effects) > 0 {
				t.Errorf("one more effect: %q", <-effects)
			}
			if opened, reused := s.Connections(); opened != 1 || reused != 5 {
				t.Errorf("%d connections, used again %d times", opened, reused)
			}
		})
	}
}
