package node_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The libraries of the publishers and subscribers of Open Notificaties are content with a node: a program plays
// each of their requests, and checks each field that they read (fanout/notificaties/testdata/clients.md).
func TestTheClientsOfTheNotificatiesAPI(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3")
	}
	const secret = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=" // as parse knows it
	c := parse(t, "webhooks: {addresses: [127.0.0.0/8]}\nsecrets: {key: {env: SECRET}}\n"+
		"notificaties: {clients: {open-zaak: {secret: {env: SECRET}, scopes: [consumeren, publiceren]}}}")
	url := serve(t, c)
	program, err := os.Open(filepath.Join("..", "fanout", "notificaties", "testdata", "client.py")) // here, so that a change of it is a change of the test
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = program.Close() }()
	play := exec.CommandContext(t.Context(), "python3", "-", url+"/api/v1/", "open-zaak")
	play.Stdin, play.Env = program, append(os.Environ(), "CLIENT_SECRET="+secret)
	if said, err := play.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, said)
	}
}
