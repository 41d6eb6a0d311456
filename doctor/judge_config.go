package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/holdfast-mq/holdfast/internal/brief"
)

func judgeConfig(f *Findings) []Check {
	const g = in("Configuration")
	name := f.Config.File
	if name == "" {
		name = "no file; the defaults hold"
	}
	var checks []Check
	switch faults, warnings := f.Config.Faults, f.Config.Warnings; {
	case len(faults) > 0:
		checks = append(checks, g.failing("configuration", fmt.Sprintf("%s: %s; a node does not start with it", name, brief.Count(len(faults), "fault", "faults")),
			"fix these lines, and check again with: holdfast config check").listing(slices.Concat(faults, warnings)))
	case len(warnings) > 0:
		checks = append(checks, g.warning("configuration", name+": "+brief.Count(len(warnings), "warning", "warnings"),
			"a node runs with it; check whether that is what you want").listing(warnings))
	default:
		checks = append(checks, g.ok("configuration", name))
	}
	checks = append(checks, judgeFiles(f)...)
	if f.Cert != nil {
		checks = append(checks, judgeCert(g, "certificate of this node", f.Cert.Path, f.Cert.Until, f.Cert.Err, f.Now))
	}
	return checks
}

// judgeFiles judges secrets that others can read.
func judgeFiles(f *Findings) []Check {
	const g = in("Configuration")
	var checks []Check
	for _, file := range f.Files {
		name := "permissions of " + file.What
		switch {
		case errors.Is(file.Err, fs.ErrNotExist):
		case file.Err != nil:
			checks = append(checks, g.warning(name, fmt.Sprintf("%s: %v", file.Path, file.Err), "run the doctor as the user of the node"))
		case file.Mode.Perm()&0o007 != 0 && !file.Shut:
			checks = append(checks, g.warning(name, fmt.Sprintf("%s has mode %04o: every user of this machine can read or change it", file.Path, file.Mode.Perm()),
				fmt.Sprintf("chmod %s %s", lessMode(file.Mode), file.Path)))
		case file.Shut:
			checks = append(checks, g.ok(name, fmt.Sprintf("%s: its folder keeps others out", file.Path)))
		default:
			checks = append(checks, g.ok(name, fmt.Sprintf("%s has mode %04o", file.Path, file.Mode.Perm())))
		}
	}
	return checks
}

func lessMode(m fs.FileMode) string { return fmt.Sprintf("%04o", m.Perm()&^0o007) }

// soon is how long before its end a certificate is worth a warning.
const soon = 14 * 24 * time.Hour

func judgeCert(g in, name, what string, until time.Time, err error, now time.Time) Check {
	left := until.Sub(now)
	days := float64(int(left.Hours() / 24))
	switch {
	case err != nil:
		return g.failing(name, fmt.Sprintf("%s: %v", what, err), "name a certificate with its key, both in PEM form")
	case left <= 0:
		return g.failing(name, fmt.Sprintf("%s: it ended %s ago, on %s", what, span(left), until.UTC().Format(time.RFC3339)), "renew it").with("daysLeft", days)
	case left < soon:
		return g.warning(name, fmt.Sprintf("%s: it ends in %s, on %s", what, span(left), until.UTC().Format(time.RFC3339)), "renew it").with("daysLeft", days)
	}
	return g.ok(name, fmt.Sprintf("%s: good until %s", what, until.UTC().Format(time.DateOnly))).with("daysLeft", days)
}
