package people_test

import (
	"encoding/base32"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/people"
)

// What a former release has made, or another program, still fits; it is known as old.
func TestHashesOfPasswords(t *testing.T) {
	t.Parallel()
	made, err := people.HashPassword(t.Context(), "correct horse")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		hash, password string
		fits, old      bool
	}{
		{made, "correct horse", true, false},
		{made, "correct horse ", false, false},
		{made, "", false, false},
		// The reference implementation: echo -n password | argon2 somesalt -id -t 2 -m 16 -p 1.
		{"$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc", "password", true, true},
		{"$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc", "passwort", false, true},
		{"", "", false, false},
		{"correct horse", "correct horse", false, false},
		{strings.Replace(made, "m=19456", "m=4294967295", 1), "correct horse", false, false},
	} {
		fits, old, err := people.VerifyPassword(t.Context(), c.hash, c.password)
		if err != nil || fits != c.fits || fits && old != c.old {
			t.Errorf("%s with %q: fits %v, old %v, %v", c.hash, c.password, fits, old, err)
		}
	}
	if again, _ := people.HashPassword(t.Context(), "correct horse"); again == made {
		t.Error("two hashes of a password have the same salt")
	}
}

// RFC 6238, appendix B, its last six digits.
func TestCodesOfTheRFC(t *testing.T) {
	t.Parallel()
	secret := []byte("12345678901234567890")
	for at, code := range map[int64]string{
		59: "287082", 1111111109: "081804", 1111111111: "050471", 1234567890: "005924", 2000000000: "279037", 20000000000: "353130",
	} {
		now := time.Unix(at, 0)
		step, ok := people.TakeTOTP(secret, code, now, 0)
		if !ok || step != at/30 {
			t.Errorf("at %d: step %d, %v", at, step, ok)
		}
		if _, ok := people.TakeTOTP(secret, code, now, step); ok {
			t.Errorf("at %d: a code is taken twice", at)
		}
		if _, ok := people.TakeTOTP(secret, code[:3]+" "+code[3:], now.Add(30*time.Second), 0); !ok {
			t.Errorf("at %d: the code of the step before is refused", at)
		}
		if _, ok := people.TakeTOTP(secret, code, now.Add(time.Minute), 0); ok {
			t.Errorf("at %d: an old code is taken", at)
		}
	}
	if _, ok := people.TakeTOTP(secret, "", time.Unix(59, 0), 0); ok {
		t.Error("no code is a code")
	}
	if text := people.TOTPText(secret); text != base32.StdEncoding.EncodeToString(secret) {
		t.Errorf("the secret is shown as %s", text)
	}
	if got := people.TOTPAddress(secret, "plant 7", "anna"); got != "otpauth://totp/plant%207:anna?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=plant+7" {
		t.Errorf("got %s", got)
	}
}

func TestARecoveryCodeIsTakenOnce(t *testing.T) {
	t.Parallel()
	list, kept := people.NewCodes()
	if len(list) != 10 || people.CodesLeft(kept) != 10 {
		t.Fatalf("%d codes, %d kept", len(list), people.CodesLeft(kept))
	}
	for i, code := range list {
		if strings.Contains(kept, code) {
			t.Errorf("%s is kept as it is", code)
		}
		left, ok := people.TakeCode(kept, strings.ToUpper(strings.ReplaceAll(code, "-", " ")))
		if !ok || people.CodesLeft(left) != 9-i {
			t.Errorf("code %d: %v, %d left", i, ok, people.CodesLeft(left))
		}
		if _, again := people.TakeCode(left, code); again {
			t.Errorf("code %d is taken twice", i)
		}
		kept = left
	}
	for _, code := range []string{"", "-"} {
		if _, ok := people.TakeCode(kept, code); ok {
			t.Errorf("after the last one %q is a code", code)
		}
	}
	if p := (people.Person{Codes: kept}); !p.Guarded() {
		t.Error(fmt.Sprint("after the last code nobody asks for the second factor: ", kept))
	}
}
