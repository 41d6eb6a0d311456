//go:build unix

package sqlite_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const nobody = 65534

// asNobody runs the test again as a user whom permissions bind, if this one is
// root, and says that it has.
func asNobody(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		return false
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	open := t.TempDir()
	mine, temp := filepath.Join(open, "test"), filepath.Join(open, "tmp")
	for _, err := range []error{
		os.Chmod(filepath.Dir(open), 0o755), os.WriteFile(mine, text, 0o755), os.Mkdir(temp, 0o700), os.Chown(temp, nobody, nobody),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), mine, "-test.v", "-test.run=^"+t.Name()+"$")
	cmd.Dir, cmd.Env = temp, append(os.Environ(), "TMPDIR="+temp)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()+" ") {
		t.Errorf("as another user: %v\n%s", err, out)
	}
	return true
}
