// Command approvals is a small HTTP service: N of M approvers must agree, one can
// reject, and every vote is one statement.
//
//	go run ./examples/approvals -listen 127.0.0.1:8080 -db approvals.db
//
//	curl -X POST localhost:8080/approvals -d '{"id":"a-1","subject":"A new laptop","required":2}'
//	curl -X POST localhost:8080/approvals/a-1/approve -d '{"approver":"ann","round":1}'
//	curl localhost:8080/approvals/a-1
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/examples/approvals/approval"
	"github.com/fsmgen/fsmgen/examples/internal/database"
)

//go:generate go run github.com/fsmgen/fsmgen/cmd/fsmgen generate --out approval approval.yaml

func main() {
	dsn := flag.String("db", "", database.Usage)
	listen := flag.String("listen", "127.0.0.1:8080", "`address` to serve on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, *dsn, *listen); err != nil {
		fmt.Fprintln(os.Stderr, "approvals:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, out io.Writer, dsn, listen string) (err error) {
	store, cleanup, err := database.Open(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cleanup()) }()
	if err := store.Migrate(ctx, approval.Definition()); err != nil {
		return err
	}
	eng, err := engine.New(store)
	if err != nil {
		return err
	}
	approvals, err := approval.New(ctx, eng)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "serving on", listener.Addr())
	return serve(ctx, listener, handler(approvals))
}

// serve answers requests until ctx ends, and then lets those in flight finish.
func serve(ctx context.Context, listener net.Listener, h http.Handler) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := server.Shutdown(grace); err != nil { // somebody keeps a connection open and says nothing
		return server.Close()
	}
	return nil
}
