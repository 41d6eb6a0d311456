//go:build unix

package mtatest

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Users that each Debian has, instead of those that Postfix's package creates.
const (
	postfixUser  = "mail"
	postfixGroup = "operator"
)

// postfixMain accepts mail and puts a mail for each recipient into a folder. It sets no limits.
const postfixMain = `compatibility_level = 3.6
queue_directory = %[1]s/queue
data_directory = %[1]s/data
meta_directory = %[1]s/conf
command_directory = %[2]s/usr/sbin
daemon_directory = %[2]s/usr/lib/postfix/sbin
import_environment = MAIL_CONFIG MAIL_LOGTAG TZ LANG=C { %[3]s }
maillog_file = %[1]s/log/maillog
maillog_file_prefixes = %[1]s
mail_owner = %[4]s
setgid_group = %[5]s
myhostname = postfix.test
mydestination =
alias_maps =
alias_database =
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
virtual_mailbox_domains = x.test
virtual_mailbox_base = %[1]s/mail
virtual_mailbox_maps = static:all/
virtual_uid_maps = static:%[6]s
virtual_gid_maps = static:%[7]s
virtual_minimum_uid = 1
smtpd_recipient_restrictions = check_policy_service inet:%[8]s
`

const postfixMaster = `127.0.0.1:%d inet n - n - - smtpd
pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
verify unix - - n - 1 verify
proxymap unix - - n - - proxymap
error unix - - n - - error
retry unix - - n - - error
virtual unix - n n - - virtual
anvil unix - - n - 1 anvil
postlog unix-dgram n - n - 1 postlogd
`

// Postfix starts a Postfix that was unpacked but not installed: its package conflicts with Exim's.
// TEST_POSTFIX names the folder; by default it is where scripts/test unpacks it.
func Postfix(t testing.TB) *Server {
	t.Helper()
	root := os.Getenv("TEST_POSTFIX")
	if root == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Skip("there is no folder of caches, and TEST_POSTFIX names no Postfix: ", err)
		}
		root = filepath.Join(cache, "holdfast-tools", "postfix")
	}
	master := filepath.Join(root, "usr/lib/postfix/sbin/master")
	if !exists(master) {
		t.Skip("there is no Postfix in " + root + ": scripts/test unpacks it there")
	}
	return start(t, "Postfix", func(s *Server) error {
		s.args = []string{master, "-c", s.path("conf"), "-d"}
		libraries, err := filepath.Glob(filepath.Join(root, "usr/lib/*-linux-gnu*"))
		if err != nil {
			return err
		}
		path := "LD_LIBRARY_PATH=" + strings.Join(append(libraries, filepath.Join(root, "usr/lib/postfix")), ":")
		s.env = []string{path, "MAIL_CONFIG=" + s.path("conf")}
		s.mails = s.inFolder
		return s.preparePostfix(root, path)
	})
}

func (s *Server) preparePostfix(root, libraries string) error {
	u, err := user.Lookup(postfixUser)
	if err != nil {
		return err
	}
	policy, err := s.policy()
	if err != nil {
		return err
	}
	folders := []string{s.path("data"), s.path("mail"), s.path("log")}
	for _, name := range []string{"active", "bounce", "corrupt", "defer", "deferred", "flush", "hold", "incoming", "private", "saved", "trace"} {
		folders = append(folders, s.path("queue", name))
	}
	err = errors.Join(os.MkdirAll(s.path("queue", "pid"), 0o755), os.MkdirAll(s.path("conf"), 0o755),
		own(postfixUser, 0o700, folders...), own(postfixUser, 0o730, s.path("queue", "maildrop")), own(postfixUser, 0o710, s.path("queue", "public")))
	if err != nil {
		return err
	}
	group, err := user.LookupGroup(postfixGroup)
	if err != nil {
		return err
	}
	gid, err := strconv.Atoi(group.Gid)
	if err != nil {
		return err
	}
	if err := errors.Join(os.Chown(s.path("queue", "maildrop"), -1, gid), os.Chown(s.path("queue", "public"), -1, gid)); err != nil {
		return err
	}
	for name, text := range map[string]string{
		"main.cf":   fmt.Sprintf(postfixMain, s.dir, root, libraries, postfixUser, postfixGroup, u.Uid, u.Gid, policy),
		"master.cf": fmt.Sprintf(postfixMaster, s.Port), "dynamicmaps.cf": "",
	} {
		if err := os.WriteFile(s.path("conf", name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// policy serves the decisions of a greylist, and which recipients are unknown (Postfix's
// SMTPD_POLICY_README), until the test ends.
func (s *Server) policy() (address string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	var ended sync.WaitGroup
	s.t.Cleanup(func() {
		_ = l.Close()
		s.Kill() // Postfix holds the connections
		ended.Wait()
	})
	ended.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			ended.Go(func() { s.answer(conn) })
		}
	})
	return l.Addr().String(), nil
}

func (s *Server) answer(conn net.Conn) {
	defer conn.Close()
	action := "dunno"
	for in := bufio.NewScanner(conn); in.Scan(); {
		switch line := in.Text(); {
		case strings.HasPrefix(line, "recipient=grey") && exists(s.path("grey")):
			action = "450 4.7.1 greylisted, try again in 300 seconds"
		case strings.HasPrefix(line, "recipient=dead"):
			action = "550 5.1.1 no such person"
		case line == "":
			if _, err := fmt.Fprintf(conn, "action=%s\n\n", action); err != nil {
				return
			}
			action = "dunno"
		}
	}
}

// inFolder reads the mails in the one shared folder.
func (s *Server) inFolder() (map[string][]string, error) {
	files, err := filepath.Glob(s.path("mail", "all", "new", "*"))
	if err != nil {
		return nil, err
	}
	all := map[string][]string{}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		to := field(string(raw), "Delivered-To")
		all[to] = append(all[to], field(string(raw), "Message-Id"))
	}
	return all, nil
}
