package pgtest_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/internal/waittest"
)

// aloneEnv makes the test binary start a server, say where, and then wait for its end.
const aloneEnv = "HOLDFAST_PGTEST_ALONE"

func TestMain(m *testing.M) {
	if how := os.Getenv(aloneEnv); how != "" {
		alone(how)
	}
	os.Exit(pgtest.Main(m, pgtest.Options{}))
}

func TestAServerSyncsUnlessTold(t *testing.T) {
	t.Parallel()
	s := pgtest.Shared(t)
	for name, want := range map[string]string{
		"fsync": "on", "synchronous_commit": "on", "max_connections": "200", "listen_addresses": "127.0.0.1", "lc_collate": "C",
	} {
		if got := ask(t, s.DSN("postgres"), "select current_setting('"+name+"')"); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestOptionsReachTheServer(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, pgtest.Options{NoSync: true, Settings: map[string]string{"work_mem": "7MB", "max_connections": "20"}})
	for name, want := range map[string]string{"fsync": "off", "work_mem": "7MB", "max_connections": "20", "synchronous_commit": "on"} {
		if got := ask(t, s.DSN("postgres"), "select current_setting('"+name+"')"); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestAWrongPasswordIsRefused(t *testing.T) {
	t.Parallel()
	s := pgtest.Shared(t)
	conn, err := pgx.Connect(t.Context(), strings.Replace(s.DSN("postgres"), "holdfast:", "holdfast:x", 1))
	if err == nil {
		conn.Close(t.Context())
		t.Fatal("got a connection with a wrong password")
	}
	if cause, ok := errors.AsType[*pgconn.PgError](err); !ok || cause.Code != "28P01" {
		t.Errorf("got %v, want invalid_password", err)
	}
}

func TestEachTestHasADatabaseOfItsOwn(t *testing.T) {
	t.Parallel()
	s := pgtest.Shared(t)
	var filled atomic.Int32
	var made [8]string
	t.Run("tests", func(t *testing.T) {
		for i := range made {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				p := s.Template(t, "letters", func(dsn string) error {
					filled.Add(1)
					conn, err := pgx.Connect(context.Background(), dsn)
					if err != nil {
						return err
					}
					// Left open on purpose: the template must take it.
					_, err = conn.Exec(context.Background(), "create table letter (x text); insert into letter values ('a')")
					return err
				})
				begin := time.Now()
				dsn := p.Database(t)
				t.Logf("copied in %v", time.Since(begin))
				made[i] = dsn[strings.LastIndex(dsn, "/")+1 : strings.Index(dsn, "?")]
				run(t, dsn, "insert into letter values ('b')")
				if got := ask(t, dsn, "select count(*)::text from letter"); got != "2" {
					t.Errorf("got %s rows, want 2: the template's and this test's", got)
				}
			})
		}
	})
	if n := filled.Load(); n != 1 {
		t.Errorf("the template was filled %d times, want once", n)
	}
	for _, name := range made {
		if got := ask(t, s.DSN("postgres"), "select count(*)::text from pg_database where datname = '"+name+"'"); got != "0" {
			t.Errorf("database %s is there after its test", name)
		}
	}
}

func TestAnEmptyDatabaseHasNoTables(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Shared(t).Database(t)
	if got := ask(t, dsn, "select count(*)::text from pg_tables where schemaname = 'public'"); got != "0" {
		t.Errorf("got %s tables, want none", got)
	}
}

// A client that stays connected does not keep the database from being dropped.
func TestADatabaseIsDroppedUnderItsClients(t *testing.T) {
	t.Parallel()
	s := pgtest.Shared(t)
	t.Run("test", func(t *testing.T) {
		connect(context.Background(), t, s.Database(t))
	})
}

// One server for all that stops it: they take turns.
func TestAServerIsStoppedPausedAndCutOff(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, pgtest.Options{NoSync: true})
	for name, test := range map[string]func(*testing.T, *pgtest.Server){
		"a restart keeps port and data":         aRestartKeepsPortAndData,
		"a server that is down refuses":         aServerThatIsDownRefuses,
		"a paused server is silent and goes on": aPausedServerIsSilentAndGoesOn,
		"terminate cuts off an application":     terminateCutsOffAnApplication,
	} {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
}

func aRestartKeepsPortAndData(t *testing.T, s *pgtest.Server) {
	t.Helper()
	dsn := s.DSN("postgres")
	run(t, dsn, "create table kept (x int)")
	steps := map[string]func() error{
		"fast":      func() error { return s.Restart(pgtest.Fast) },
		"immediate": func() error { return s.Restart(pgtest.Immediate) },
		"kill":      func() error { return errors.Join(s.Kill(), s.Start()) },
		"kill while paused": func() error {
			return errors.Join(s.Pause(), s.Kill(), s.Start())
		},
	}
	rows := 0
	for name, step := range steps {
		connect(t.Context(), t, dsn) // stays open: a stop does not wait for it
		run(t, dsn, "insert into kept values (1)")
		rows++
		before := s.PID()
		begin := time.Now()
		if err := step(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		t.Logf("%s took %v", name, time.Since(begin))
		if s.PID() == before {
			t.Errorf("%s: the server was not started again", name)
		}
		if got := ask(t, dsn, "select count(*)::text from kept"); got != strconv.Itoa(rows) {
			t.Errorf("%s: got %s rows, want %d", name, got, rows)
		}
	}
}

func aServerThatIsDownRefuses(t *testing.T, s *pgtest.Server) {
	t.Helper()
	if err := s.Stop(pgtest.Immediate); err != nil {
		t.Fatal(err)
	}
	if _, err := pgx.Connect(t.Context(), s.DSN("postgres")); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("got %v, want a refused connection", err)
	}
	if err := s.Stop(pgtest.Fast); err == nil {
		t.Error("stopped a server that was down")
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err == nil {
		t.Error("started a server that runs")
	}
}

func aPausedServerIsSilentAndGoesOn(t *testing.T, s *pgtest.Server) {
	t.Helper()
	conn := connect(t.Context(), t, s.DSN("postgres"))
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	asked := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	var asking sync.WaitGroup
	defer asking.Wait() // the connection is closed after it, however the test ends
	defer cancel()
	asking.Go(func() {
		_, err := conn.Exec(ctx, "select 1")
		asked <- err
	})
	select {
	case err := <-asked:
		t.Fatalf("a paused server answered: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := <-asked; err != nil {
		t.Errorf("the question of before the pause: %v", err)
	}
}

func terminateCutsOffAnApplication(t *testing.T, s *pgtest.Server) {
	t.Helper()
	listener := connect(t.Context(), t, s.DSN("postgres")+"&application_name=listener")
	other := connect(t.Context(), t, s.DSN("postgres"))
	if n, err := s.Terminate("listener"); n != 1 || err != nil {
		t.Fatalf("got %d, %v; want one connection", n, err)
	}
	if _, err := listener.Exec(t.Context(), "select 1"); err == nil {
		t.Error("the application's connection goes on")
	}
	if _, err := other.Exec(t.Context(), "select 1"); err != nil {
		t.Errorf("another connection: %v", err)
	}
	if err := s.TerminatePID(int(other.PgConn().PID())); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Exec(t.Context(), "select 1"); err == nil {
		t.Error("the connection goes on after its process was terminated")
	}
	if err := s.TerminatePID(1); err == nil {
		t.Error("terminated a connection that does not exist")
	}
}

// Through a pooler that pools transactions, two clients meet on one connection of the server; in a
// session each has its own.
func TestBouncerPools(t *testing.T) {
	t.Parallel()
	s := pgtest.Shared(t)
	for mode, want := range map[pgtest.Pooling]bool{pgtest.Transaction: true, pgtest.Session: false} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.Bouncer(t, s, mode).Through(t, s.Database(t))
			dsn += "&default_query_exec_mode=simple_protocol"
			a, b := connect(t.Context(), t, dsn), connect(t.Context(), t, dsn)
			var pids [2]int
			for i, conn := range []*pgx.Conn{a, b} {
				if err := conn.QueryRow(t.Context(), "select pg_backend_pid()").Scan(&pids[i]); err != nil {
					t.Fatal(err)
				}
			}
			if got := pids[0] == pids[1]; got != want {
				t.Errorf("got connections %v, want the same one: %v", pids, want)
			}
		})
	}
}

// Neither a server nor its folder outlives the test binary, however that ends.
func TestNothingOutlivesTheTestBinary(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"killed", "killed while paused", "panic"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			dir, pids := bequeath(t, how)
			for _, pid := range pids {
				waittest.Until(t, fmt.Sprintf("process %d has ended", pid), func() bool { return !runs(t, pid) })
			}
			waittest.Until(t, dir+" is empty", func() bool {
				left, err := os.ReadDir(dir)
				if err != nil {
					t.Fatal(err)
				}
				return len(left) == 0
			})
		})
	}
}

// bequeath lets a test binary start a server, ends it, and returns the folder of its temporary files
// and the processes that there were.
func bequeath(t *testing.T, how string) (dir string, pids []int) {
	t.Helper()
	tmp := t.TempDir()
	// The server's user must reach the folder.
	for path := tmp; path != os.TempDir() && path != "/"; path = filepath.Dir(path) {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(os.Args[0])
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.Env = append(os.Environ(), aloneEnv+"="+how, "TMPDIR="+tmp)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	for word := range strings.FieldsSeq(line) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			t.Fatalf("the child says %q: %v", line, err)
		}
		pids = append(pids, pid)
	}
	if strings.HasPrefix(how, "killed") {
		_ = cmd.Process.Kill()
	}
	_ = cmd.Wait()
	if err != nil {
		t.Fatalf("read the child's line: %v\n%s", err, &stderr)
	}
	return tmp, append(pids, cmd.Process.Pid)
}

// alone is the test binary that ends without a word to its server.
func alone(how string) {
	s, err := pgtest.New(pgtest.Options{NoSync: true})
	if err == nil && strings.HasSuffix(how, "paused") {
		err = s.Pause()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(s.PID())
	if how == "panic" {
		panic("as a test that fails badly")
	}
	select {}
}

func connect(ctx context.Context, t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func run(t *testing.T, dsn, sql string) {
	t.Helper()
	if _, err := connect(t.Context(), t, dsn).Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func ask(t *testing.T, dsn, sql string) string {
	t.Helper()
	var answer string
	if err := connect(t.Context(), t, dsn).QueryRow(t.Context(), sql).Scan(&answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

// runs is whether a process is there and is more than an entry that waits for its parent.
func runs(t *testing.T, pid int) bool {
	t.Helper()
	out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	if err != nil && len(out) > 0 {
		t.Fatal(err)
	}
	stat := strings.TrimSpace(string(out))
	return stat != "" && !strings.HasPrefix(stat, "Z")
}
