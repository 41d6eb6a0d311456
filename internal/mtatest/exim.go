//go:build unix

package mtatest

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// eximUser is the user of Debian's Exim.
const eximUser = "Debian-exim"

// eximConf accepts mail and does not deliver it. It sets no limits.
const eximConf = `primary_hostname = exim.test
exim_path = %[1]s
spool_directory = %[2]s/spool
log_file_path = %[2]s/log/%%slog
pid_file_path = %[2]s/pid
local_interfaces = <; 127.0.0.1
daemon_smtp_ports = %[3]d
queue_only = true
tls_advertise_hosts =
acl_smtp_rcpt = rcpt
begin acl
rcpt:
  deny
    local_parts = ^dead
    message = 5.1.1 no such person
  defer
    local_parts = ^grey
    condition = ${if exists{%[2]s/grey}}
    message = 4.7.1 greylisted, try again in 300 seconds
  accept
`

// Exim starts an Exim from the system's package.
func Exim(t testing.TB) *Server {
	t.Helper()
	bin, err := exec.LookPath("exim4")
	if err != nil {
		if bin = "/usr/sbin/exim4"; !exists(bin) {
			t.Skip("there is no Exim (exim4): scripts/test installs exim4-daemon-light")
		}
	}
	return start(t, "Exim", func(s *Server) error {
		conf := s.path("exim.conf")
		s.args = []string{bin, "-C", conf, "-bdf"}
		s.mails = s.inSpool
		if err := own(eximUser, 0o750, s.path("spool"), s.path("log")); err != nil {
			return err
		}
		return os.WriteFile(conf, fmt.Appendf(nil, eximConf, bin, s.dir, s.Port), 0o644)
	})
}

// inSpool reads the files of the undelivered mails. Their number of recipients is on a line of its
// own, followed by the recipients.
func (s *Server) inSpool() (map[string][]string, error) {
	files, err := filepath.Glob(s.path("spool", "input", "*-H"))
	if err != nil {
		return nil, err
	}
	all := map[string][]string{}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		_, rest, _ := strings.Cut(string(raw), "\nXX\n") // no recipient has been delivered to
		count, rest, _ := strings.Cut(rest, "\n")
		n, err := strconv.Atoi(count)
		if err != nil {
			return nil, fmt.Errorf("%s is not understood: %w\n%s", f, err, raw)
		}
		for range n {
			var to string
			to, rest, _ = strings.Cut(rest, "\n")
			all[to] = append(all[to], field(rest, "Message-Id"))
		}
	}
	return all, nil
}

// own makes folders that belong to a user.
func own(name string, mode os.FileMode, folders ...string) error {
	u, err := user.Lookup(name)
	if err != nil {
		return err
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return err
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return err
	}
	for _, f := range folders {
		if err := os.MkdirAll(f, mode); err != nil {
			return err
		}
		if err := os.Chmod(f, mode); err != nil {
			return err
		}
		if err := os.Chown(f, uid, gid); err != nil {
			return err
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
