package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/examples/approvals/approval"
	"github.com/fsmgen/fsmgen/examples/internal/database"
)

// databases are those the service is driven on: SQLite always, the others where a DSN
// says where they are.
func databases(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{"sqlite": filepath.Join(t.TempDir(), "approvals.db")}
	for name, env := range map[string]string{"postgres": "FSMGEN_TEST_POSTGRES", "mysql": "FSMGEN_TEST_MYSQL"} {
		dsn := os.Getenv(env)
		switch {
		case dsn == "" && os.Getenv("FSMGEN_REQUIRE_DATABASES") == "1":
			t.Errorf("%s is not set", env)
		case dsn == "":
			t.Logf("not on %s: set %s to its DSN", name, env)
		case name == "mysql":
			out[name] = "mysql://" + dsn
		default:
			out[name] = dsn
		}
	}
	return out
}

// client talks to the service over a socket.
type client struct {
	t    *testing.T
	base string
	id   string
}

// start serves on a socket of its own.
func start(t *testing.T, dsn string) client {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	store, cleanup, err := database.Open(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Migrate(ctx, approval.Definition()); err != nil {
		t.Fatal(err)
	}
	eng, err := engine.New(store)
	if err != nil {
		t.Fatal(err)
	}
	approvals, err := approval.New(ctx, eng)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- serve(ctx, listener, handler(approvals)) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
		if n := store.DB().Stats().InUse; n != 0 {
			t.Errorf("%d connections in use at the end", n)
		}
		if err := cleanup(); err != nil {
			t.Error(err)
		}
	})
	return client{t, "http://" + listener.Addr().String(), "a-" + rand.Text()} // an id of this run alone
}

// do sends a request and gives status and body.
func (c client) do(method, path, body string, header ...string) (int, map[string]any) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.base+path, bytes.NewBufferString(body))
	if err != nil {
		c.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Error(err)
		return 0, nil
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Error(err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(raw, &out); err != nil {
		c.t.Errorf("%s %s: %s", method, path, raw)
	}
	return res.StatusCode, out
}

func (c client) vote(kind, approver string, round int) (int, map[string]any) {
	c.t.Helper()
	return c.do("POST", "/approvals/"+c.id+"/"+kind, fmt.Sprintf(`{"approver":%q,"round":%d}`, approver, round))
}

func (c client) want(status int, got int, body map[string]any) {
	c.t.Helper()
	if got != status {
		c.t.Errorf("status %d, want %d: %v", got, status, body)
	}
}

func TestFiftyApproversAtOnce(t *testing.T) {
	for name, dsn := range databases(t) {
		t.Run(name, func(t *testing.T) {
			c := start(t, dsn)
			status, body := c.do("POST", "/approvals", fmt.Sprintf(`{"id":%q,"subject":"A bridge","required":50}`, c.id))
			c.want(http.StatusOK, status, body)
			var mu sync.Mutex
			var wg sync.WaitGroup
			applied, replayed, decided := 0, 0, 0
			for n := range 100 { // every approver votes twice
				wg.Go(func() {
					status, body := c.vote("approve", fmt.Sprintf("approver-%d", n%50), 1)
					c.want(http.StatusOK, status, body)
					mu.Lock()
					defer mu.Unlock()
					switch body["outcome"] {
					case "Applied":
						applied++
						if body["state"] == "approved" {
							decided++
						}
					case "Replayed":
						replayed++
					}
				})
			}
			wg.Wait()
			if applied != 50 || replayed != 50 || decided != 1 {
				t.Errorf("%d applied, %d replayed, %d decided; want 50, 50, 1", applied, replayed, decided)
			}
			_, body = c.do("GET", "/approvals/"+c.id, "")
			if body["Approvals"] != float64(50) || body["Status"] != "approved" || body["Version"] != float64(51) {
				t.Errorf("the row is %v", body)
			}
		})
	}
}

func TestRoundsAndRejection(t *testing.T) {
	for name, dsn := range databases(t) {
		t.Run(name, func(t *testing.T) {
			c := start(t, dsn)
			create := fmt.Sprintf(`{"id":%q,"subject":"A bridge","required":2}`, c.id)
			for _, want := range []string{"Applied", "AlreadyReached"} {
				if status, body := c.do("POST", "/approvals", create); status != http.StatusOK || body["outcome"] != want {
					t.Errorf("create: %d %v, want %s", status, body, want)
				}
			}
			steps := []struct {
				kind, approver string
				round, status  int
				outcome        any
			}{
				{"approve", "ann", 1, http.StatusOK, "Applied"},
				{"approve", "ann", 1, http.StatusOK, "Replayed"},
				{"reject", "bob", 1, http.StatusOK, "Applied"},
				{"approve", "cid", 1, http.StatusConflict, nil},
				{"reopen", "", 0, http.StatusOK, "Applied"},
				{"reopen", "", 0, http.StatusOK, "Replayed"},
				{"approve", "ann", 1, http.StatusOK, "Replayed"}, // her vote of round 1, late
				{"approve", "cid", 1, http.StatusConflict, nil},  // too late for round 1
				{"approve", "ann", 2, http.StatusOK, "Applied"},
				{"approve", "cid", 2, http.StatusOK, "Applied"},
				{"approve", "dee", 2, http.StatusConflict, nil}, // a vote that was never counted
			}
			for i, s := range steps {
				var status int
				var body map[string]any
				if s.kind == "reopen" {
					status, body = c.do("POST", "/approvals/"+c.id+"/reopen", "", "Idempotency-Key", "reopen-1")
				} else {
					status, body = c.vote(s.kind, s.approver, s.round)
				}
				if status != s.status || body["outcome"] != s.outcome {
					t.Errorf("step %d, %+v: %d %v", i, s, status, body)
				}
			}
			_, body := c.do("GET", "/approvals/"+c.id, "")
			if body["Status"] != "approved" || body["Round"] != float64(2) || body["Approvals"] != float64(2) {
				t.Errorf("the row is %v", body)
			}
		})
	}
}

func TestBadRequests(t *testing.T) {
	c := start(t, "")
	for _, bad := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", "/approvals", `{"id":`, http.StatusBadRequest},
		{"POST", "/approvals", `{"id":"x","subject":"s","colour":"red"}`, http.StatusBadRequest},
		{"POST", "/approvals", `{"subject":"s"}`, http.StatusBadRequest},
		{"POST", "/approvals/nobody/approve", `{"approver":"a","round":1}`, http.StatusNotFound},
		{"POST", "/approvals/nobody/reopen", ``, http.StatusBadRequest}, // no key
		{"GET", "/approvals/nobody", ``, http.StatusNotFound},
	} {
		status, body := c.do(bad.method, bad.path, bad.body)
		if status != bad.status || body["error"] == "" {
			t.Errorf("%s %s %s: %d %v, want %d", bad.method, bad.path, bad.body, status, body, bad.status)
		}
	}
}
