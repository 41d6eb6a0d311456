package pgtest

import (
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
)

// binaries returns the folder of the newest PostgreSQL: Debian has one per version, outside PATH.
func binaries() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil {
		return "", err
	}
	if len(found) > 0 {
		return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })), nil
	}
	path, err := exec.LookPath("postgres")
	if err != nil {
		return "", errors.New("there is no PostgreSQL: no /usr/lib/postgresql/*/bin/postgres and no postgres in PATH; " +
			"on Debian: apt-get install postgresql")
	}
	// The entry of PATH may be a link; initdb is beside its target.
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", err
	}
	return filepath.Dir(path), nil
}

// version returns the 15 of /usr/lib/postgresql/15/bin/postgres, or 0 if there is no number.
func version(postgres string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(postgres))))
	return n
}

// bouncer finds the program pgbouncer, which Debian installs in a folder of root's PATH.
func bouncer() (string, error) {
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("there is no pgbouncer in PATH or /usr/sbin; on Debian: apt-get install pgbouncer")
}
