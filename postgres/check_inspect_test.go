package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/postgres"
)

// What Inspect cannot read is an error, and not a number of nothing.
func TestInspectSaysWhatItCannotRead(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	db := open(t, dsn, postgres.Options{})
	keep := nodestore.New(db, nil)
	if err := keep.Sites.AddSite(t.Context(), "plant-7", [32]byte{7}, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := keep.Sites.EnrollSite(t.Context(), [32]byte{7}, [32]byte{8}); err != nil {
		t.Fatal(err)
	}
	if err := keep.Tokens.CreateToken(t.Context(), "ops", "admin", 0, [32]byte{1}, ""); err != nil {
		t.Fatal(err)
	}
	shut(t, db)
	if in, err := postgres.Inspect(t.Context(), dsn); err != nil || in.Sites != 1 || in.Admins != 1 || in.Refused != nil {
		t.Errorf("Inspect = %+v, %v; want one site and one admin", in, err)
	}
	for _, table := range []string{"hf_site", "hf_token"} {
		letGo := locked(t, dsn, table)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		if in, err := postgres.Inspect(ctx, dsn); err == nil {
			t.Errorf("while %s is locked: %d sites and %d admins", table, in.Sites, in.Admins)
		}
		cancel()
		letGo()
	}
}
