package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast/internal/exchange"
)

// sites are the names of the sites.
var sites = [...]string{"plant-1", "plant-2"}

// plant is a site: its node, and the programs there.
type plant struct {
	*child
	*producer
}

func newPlant(c *child, book *ledger, rate int) *plant {
	return &plant{c, &producer{
		book: book, site: c.name, every: time.Second * time.Duration(len(sites)) / time.Duration(rate),
		client: exchange.NewClient(exchange.Settings{Idle: submitters}),
	}}
}

// startNode starts the node, and tells the programs its URL.
func (p *plant) startNode(ctx context.Context) error {
	url, err := p.start(ctx)
	if err == nil {
		p.url.Store(&url)
	}
	return err
}

// enroll makes the site known at central as a person does: central prints a token, and the site uses it.
func (d *demo) enroll(ctx context.Context, name, centralURL, networkURL string) error {
	printed, err := d.command(ctx, "", "sites", "add", name, "--json", "--url", centralURL)
	if err != nil {
		return err
	}
	var token struct {
		Token string `json:"token"`
	}
	if err := json.Unmarshal(printed, &token); err != nil || token.Token == "" {
		return fmt.Errorf("add site %s: no token in %q", name, printed)
	}
	_, err = d.command(ctx, token.Token+"\n", "enroll", networkURL, "--file", filepath.Join(d.dir, name+".credential"))
	return err
}

// command runs a command of the program to its end, and returns its output.
func (d *demo) command(ctx context.Context, input string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	argv := append(append([]string(nil), d.o.Program...), args...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...) //nolint:gosec // this program itself
	var out, faults bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = strings.NewReader(input), &out, &faults, plainEnvironment()
	apart(cmd)
	if err := cmd.Run(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", strings.Join(args, " "), err), errors.New(strings.TrimSpace(faults.String())))
	}
	return out.Bytes(), nil
}
