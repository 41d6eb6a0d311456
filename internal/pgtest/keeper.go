package pgtest

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

//go:embed watchdog.sh
var watchdog string

// patience limits each wait for a process or a server's answer.
const patience = 60 * time.Second

// A keeper owns a folder and the processes that run in it. Its watchdog makes sure that neither
// outlives this process.
type keeper struct {
	dir   string
	owner *owner // owner of the folder, and user of the processes; nil: the current user
	dog   *exec.Cmd
	leash io.Closer // closing it tells the watchdog to end everything; the kernel closes it when this process ends
	once  sync.Once
	err   error
}

// newKeeper makes a folder in parent; "" is the system's folder for temporary files.
func newKeeper(parent, name string) (*keeper, error) {
	who, err := unprivileged()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(parent, "holdfast-"+name+"-")
	if err != nil {
		return nil, err
	}
	k := &keeper{dir: dir, owner: who}
	if err := k.watch(); err != nil {
		return nil, errors.Join(fmt.Errorf("start the watchdog of %s: %w", dir, err), os.RemoveAll(dir))
	}
	if err := k.give(dir); err != nil {
		return nil, errors.Join(err, k.close())
	}
	return k, nil
}

// watch starts the watchdog, detached from the terminal's signals: it must outlive this process.
func (k *keeper) watch() error {
	k.dog = exec.Command("sh", "-c", watchdog, "watchdog", k.dir)
	k.dog.Dir = "/"
	if err := detach(k.dog, nil); err != nil {
		return err
	}
	leash, err := k.dog.StdinPipe()
	if err != nil {
		return err
	}
	k.leash = leash
	return k.dog.Start()
}

// give gives a file or folder to the user of the processes.
func (k *keeper) give(path string) error {
	if k.owner == nil {
		return nil
	}
	return os.Chown(path, k.owner.uid, k.owner.gid)
}

// write makes a file that only the processes can read.
func (k *keeper) write(name, text string) (string, error) {
	path := filepath.Join(k.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return "", err
	}
	return path, k.give(path)
}

// close ends all processes and removes the folder, and then returns.
func (k *keeper) close() error {
	k.once.Do(func() {
		timer := time.AfterFunc(patience, func() { _ = k.dog.Process.Kill() })
		defer timer.Stop()
		_ = k.leash.Close()
		_ = k.dog.Wait() // what it left behind says more than its exit status
		if _, err := os.Stat(k.dir); err == nil {
			k.err = fmt.Errorf("remove %s: its watchdog has ended and it is still there", k.dir)
		}
	})
	return k.err
}

// A process is a running process of the keeper.
type process struct {
	pid  int
	done chan struct{} // closed when it ends
	err  error         // its exit error; valid after done
}

// spawn starts a command in the folder. Its output goes to the log name.log. signal is the one that
// stops it quickly.
func (k *keeper) spawn(name, signal string, cmd *exec.Cmd) (*process, error) {
	log, err := os.OpenFile(k.logFile(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Dir, cmd.Stdout, cmd.Stderr = k.dir, log, log
	cmd.Env = environment()
	if err := detach(cmd, k.owner); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	p := &process{pid: cmd.Process.Pid, done: make(chan struct{})}
	note := filepath.Join(k.dir, name+".pid")
	err = os.WriteFile(note, fmt.Appendf(nil, "%s %d\n", signal, p.pid), 0o600)
	go func() {
		p.err = cmd.Wait()
		_ = os.Remove(note) // from here on another process may have the number
		close(p.done)
	}()
	if err != nil {
		_ = cmd.Process.Kill()
		<-p.done
		return nil, err
	}
	return p, nil
}

// run starts a command and waits for its end.
func (k *keeper) run(name string, cmd *exec.Cmd) error {
	p, err := k.spawn(name, "KILL", cmd)
	if err != nil {
		return err
	}
	if err := p.wait(); err != nil {
		return fmt.Errorf("run %s: %w\n%s", name, err, k.log(name))
	}
	return nil
}

// wait returns the exit error of the process, or an error if it does not end in time.
func (p *process) wait() error {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.done:
		return p.err
	case <-timer.C:
		return fmt.Errorf("process %d still runs after %v", p.pid, patience)
	}
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (k *keeper) logFile(name string) string { return filepath.Join(k.dir, name+".log") }

// log returns the end of a process's output, to show beside an error.
func (k *keeper) log(name string) string {
	text, err := os.ReadFile(k.logFile(name))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return "the end of its log:\n\t" + strings.Join(lines[max(0, len(lines)-40):], "\n\t")
}

// environment returns our environment without variables that would mislead a server or its tools.
func environment() []string {
	var env []string
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "PG") && !strings.HasPrefix(entry, "LC_") && !strings.HasPrefix(entry, "LANG") {
			env = append(env, entry)
		}
	}
	return append(env, "LC_ALL=C", "TZ=UTC")
}

func numbers(pids []int) string {
	var b strings.Builder
	for _, pid := range pids {
		b.WriteString(strconv.Itoa(pid) + "\n")
	}
	return b.String()
}
