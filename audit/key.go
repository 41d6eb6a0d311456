package audit

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/mod/sumdb/note"

	"github.com/holdfast-mq/holdfast/internal/namedfile"
)

// ErrKey means that a file is not a key that checkpoints can be signed with, or that others may read
// it.
var ErrKey = errors.New("not a key for audit checkpoints")

// Key signs checkpoints. It is not kept in the database: whoever can write the database cannot sign. It is the key
// that its file has; a Log may change both. Its methods may be called concurrently.
type Key struct {
	path string

	mu      sync.RWMutex
	private ed25519.PrivateKey
}

// nextFile is added to the name of a key's file for the key that is to follow it.
const nextFile = ".new"

// next opens the key that is to follow. It makes a new one if there is no file.
func (k *Key) next() (*Key, error) {
	next, err := OpenKey(k.path + nextFile)
	if err == nil && next.Public() == k.Public() {
		err = fmt.Errorf("%w: %s has the key that signs already", ErrKey, next.path)
	}
	return next, err
}

// find opens the file that has a key: the one that is to follow, or this one's own, which may have changed.
func (k *Key) find(p Public) (*Key, error) {
	for _, path := range []string{k.path + nextFile, k.path} {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if found, err := OpenKey(path); err != nil || found.Public() == p {
			return found, err
		}
	}
	return nil, fmt.Errorf("%w: the log was handed over to another one, which is neither %s nor %s: copy it from the node that did that", ErrKey, k.path+nextFile, k.path)
}

// become makes k the other key, and gives it its file. If the process dies before, find has it.
func (k *Key) become(next *Key) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if next.path != k.path {
		if err := os.Rename(next.path, k.path); err != nil {
			return fmt.Errorf("put the new audit key in place: %w", err)
		}
		namedfile.SyncFolder(filepath.Dir(k.path))
	}
	k.private = next.private
	return nil
}

func (k *Key) secret() ed25519.PrivateKey {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.private
}

// OpenKey reads a key from a file: a PEM block "PRIVATE KEY" (PKCS #8) with an Ed25519 key. It makes a new key
// if there is no file. ErrKey: other users of the machine may read the file, or it has no such key.
func OpenKey(path string) (*Key, error) {
	text, err := namedfile.Read(path, 16<<10)
	if errors.Is(err, fs.ErrNotExist) {
		return makeKey(path)
	}
	if err != nil {
		return nil, fmt.Errorf("read audit key: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read audit key: %w", err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%w: others may read %s: chmod 600 %s", ErrKey, path, path)
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, fmt.Errorf("%w: %s has no PEM block PRIVATE KEY", ErrKey, path)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrKey, path, err)
	}
	private, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%w: %s has a %T, and not an Ed25519 key", ErrKey, path, parsed)
	}
	return &Key{path: path, private: private}, nil
}

// makeKey writes a new key, on disk when it returns. The file is there as a whole or not at all.
func makeKey(path string) (*Key, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make audit key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, fmt.Errorf("make audit key: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".audit-key-*") // mode 0600
	if err != nil {
		return nil, fmt.Errorf("make audit key: %w", err)
	}
	err = pem.Encode(f, &pem.Block{Type: "PRIVATE KEY", Bytes: der})
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Link(f.Name(), path) // unlike Rename it replaces nothing
	}
	err = errors.Join(err, os.Remove(f.Name()))
	if err != nil {
		return nil, fmt.Errorf("make audit key: %w", err)
	}
	namedfile.SyncFolder(filepath.Dir(path)) // the store will name this key: with its file lost, nobody could sign that log
	return &Key{path: path, private: private}, nil
}

// Public returns the key by which everybody can check what the key has signed.
func (k *Key) Public() Public { return Public(k.secret().Public().(ed25519.PublicKey)) } //nolint:forcetypeassert // so the library says

// Public checks checkpoints.
type Public [ed25519.PublicKeySize]byte

// verifier returns the verifier key under the name of a log; see golang.org/x/mod/sumdb/note.
func (p Public) verifier(origin string) string {
	text, _ := note.NewEd25519VerifierKey(keyName(origin), p[:]) // the length is right
	return text
}

// VerifierKey returns the key in the form that verifiers of signed notes read.
func (k *Key) VerifierKey(origin string) string { return k.Public().verifier(origin) }

// ParsePublic reads a verifier key. Its name does not matter: a log has another one after a restore.
func ParsePublic(text string) (p Public, err error) {
	parts := strings.SplitN(strings.TrimSpace(text), "+", 3)
	if len(parts) == 3 {
		data, err := base64.StdEncoding.DecodeString(parts[2])
		if err == nil && len(data) == 1+len(p) && data[0] == 1 {
			copy(p[:], data[1:])
			return p, nil
		}
	}
	return p, fmt.Errorf("%w: it is not NAME+HASH+KEY, as holdfast audit verify prints it", ErrKey)
}

// keyName returns the name of a key: that of the log, without what a name may not have.
func keyName(origin string) string {
	return strings.Map(func(r rune) rune {
		if r == '+' || unicode.IsSpace(r) {
			return '_'
		}
		return r
	}, origin)
}

// signer implements note.Signer.
type signer struct {
	name    string
	hash    uint32
	private ed25519.PrivateKey
}

func (k *Key) signer(origin string) (signer, error) {
	v, err := note.NewVerifier(k.VerifierKey(origin))
	if err != nil {
		return signer{}, fmt.Errorf("name of a key: %w", err)
	}
	return signer{v.Name(), v.KeyHash(), k.secret()}, nil
}

func (s signer) Name() string                    { return s.name }
func (s signer) KeyHash() uint32                 { return s.hash }
func (s signer) Sign(msg []byte) ([]byte, error) { return ed25519.Sign(s.private, msg), nil }
