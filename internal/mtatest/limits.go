//go:build unix

package mtatest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Limits returns the limits on clients of the server, by name: the values here, and the values that
// its makers or Debian set.
func (s *Server) Limits() (here, usual map[string]string) {
	s.t.Helper()
	names, ask := postfixLimits, s.askPostfix
	if s.Name == "Exim" {
		names, ask = eximLimits, s.askExim
	}
	var err error
	if here, usual, err = ask(names); err != nil {
		s.t.Fatalf("limits of %s: %v", s.Name, err)
	}
	return here, usual
}

var eximLimits = []string{
	"message_size_limit", "recipients_max", "smtp_accept_max", "smtp_accept_max_nonmail", "smtp_accept_max_per_connection", "smtp_accept_max_per_host",
	"smtp_accept_queue", "smtp_accept_queue_per_connection", "smtp_max_synprot_errors", "smtp_max_unknown_commands", "smtp_receive_timeout", "smtp_enforce_sync",
}

var postfixLimits = []string{
	"message_size_limit", "line_length_limit", "smtpd_client_connection_count_limit", "smtpd_client_connection_rate_limit", "smtpd_client_message_rate_limit",
	"smtpd_client_recipient_rate_limit", "smtpd_error_sleep_time", "smtpd_hard_error_limit", "smtpd_soft_error_limit", "smtpd_junk_command_limit",
	"smtpd_recipient_limit", "smtpd_recipient_overshoot_limit", "smtpd_timeout",
}

func (s *Server) askExim(names []string) (here, usual map[string]string, err error) {
	empty := s.path("empty.conf")
	if err := os.WriteFile(empty, nil, 0o644); err != nil {
		return nil, nil, err
	}
	ask := func(conf string) (map[string]string, error) {
		out, err := s.tell(s.args[0], append([]string{"-C", conf, "-bP"}, names...)...)
		return values(out), err
	}
	if here, err = ask(s.path("exim.conf")); err != nil {
		return nil, nil, err
	}
	usual, err = ask(empty)
	return here, usual, err
}

func (s *Server) askPostfix(names []string) (here, usual map[string]string, err error) {
	postconf := filepath.Join(filepath.Dir(s.args[0]), "../../../sbin/postconf")
	out, err := s.tell(postconf, append([]string{"-c", s.path("conf")}, names...)...)
	if err != nil {
		return nil, nil, err
	}
	compiled, err := s.tell(postconf, append([]string{"-c", s.path("conf"), "-d"}, names...)...)
	return values(out), values(compiled), err
}

// values reads lines such as "name = value" and "no_name".
func values(out string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(out) {
		name, value, set := strings.Cut(strings.TrimSpace(line), " =")
		if value = strings.TrimSpace(value); !set {
			value = fmt.Sprint(!strings.HasPrefix(name, "no_"))
			name = strings.TrimPrefix(name, "no_")
		}
		all[name] = value
	}
	return all
}
