package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/internal/servertest"
)

func TestClassify(t *testing.T) {
	pg := func(code string) error { return &pgconn.PgError{Code: code} }
	unique := func(schema, table, constraint, detail string) error {
		return &pgconn.PgError{Code: "23505", SchemaName: schema, TableName: table, ConstraintName: constraint, Detail: detail}
	}
	const key, version = "Key (machine, entity_id, key)=(", "Schlüssel »(machine, entity_id, version)=("
	for _, c := range []struct {
		err  error
		want engine.Class
	}{
		{pg("40001"), engine.ClassRetryable},
		{pg("40P01"), engine.ClassRetryable},
		{pg("55P03"), engine.ClassRetryable},
		{pg("57014"), engine.ClassRetryable},
		{pg("53300"), engine.ClassRetryable},
		{pg("57P03"), engine.ClassRetryable},
		{pg("25006"), engine.ClassRetryable},
		{pg("57P01"), engine.ClassUnknown},
		{pg("57P02"), engine.ClassUnknown},
		{pg("08006"), engine.ClassUnknown},
		{pg("25P02"), engine.ClassFatal},
		{pg("22003"), engine.ClassFatal},
		{pg("42P01"), engine.ClassFatal},
		{pg("42P07"), engine.ClassFatal},
		{pg("23514"), engine.ClassConstraint},
		{pg("23502"), engine.ClassConstraint},
		{pg("23503"), engine.ClassConstraint},
		{pg("23P01"), engine.ClassConstraint},
		{unique("public", "log", "any", key), engine.ClassDuplicateKey},
		{unique("public", "log", "any", version), engine.ClassVersionTaken},
		{unique("public", "log", "log_key", ""), engine.ClassDuplicateKey},
		{unique("public", "log", "log_version", ""), engine.ClassVersionTaken},
		{unique("public", "log", "log_machine_entity_id_version_key", `Key (machine, entity_id, version)=(a, "(machine, entity_id, key)=", 2)`), engine.ClassVersionTaken},
		{unique("public", "log", "log_pkey", "Key (seq)=(1)"), engine.ClassConstraint},
		{unique("public", "orders", "orders_key", key), engine.ClassConstraint},
		{fmt.Errorf("wrapped: %w", pg("40001")), engine.ClassRetryable},
		{pgx.ErrTxCommitRollback, engine.ClassRetryable},
		{sql.ErrTxDone, engine.ClassRetryable},
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, engine.ClassRetryable},
		{&net.OpError{Op: "read", Err: syscall.ECONNRESET}, engine.ClassUnknown},
		{io.EOF, engine.ClassUnknown},
		{io.ErrUnexpectedEOF, engine.ClassUnknown},
		{net.ErrClosed, engine.ClassUnknown},
		{os.ErrDeadlineExceeded, engine.ClassUnknown},
		{driver.ErrBadConn, engine.ClassUnknown},
		{sql.ErrConnDone, engine.ClassUnknown},
		{pgconn.ErrConnClosed, engine.ClassUnknown},
		{context.Canceled, engine.ClassUnknown},
		{context.DeadlineExceeded, engine.ClassUnknown},
		{errors.New("failed to encode args[0]"), engine.ClassFatal},
		{errors.New("sql: database is closed"), engine.ClassFatal},
	} {
		if got := (dialect{}).Classify(c.err, "log"); got != c.want {
			t.Errorf("%#v: class %d, want %d", c.err, got, c.want)
		}
	}
	if got := (dialect{}).Classify(unique("other", "log", "log_key", key), "public.log"); got != engine.ClassConstraint {
		t.Errorf("a journal of another schema: class %d", got)
	}
}

// What the server and the driver really say when there is no connection to be had.
func TestClassifyConnecting(t *testing.T) {
	dsn := servertest.Postgres(t)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	addr := closed.Addr().String()
	check(t, closed.Close())
	for _, c := range []struct {
		dsn  string
		want engine.Class
	}{
		{through(t, dsn, addr), engine.ClassRetryable},
		{withParams(t, dsn, "dbname", "there_is_none"), engine.ClassFatal},
		{withParams(t, dsn, "user", "there_is_nobody"), engine.ClassFatal},
		{withParams(t, dsn, "there_is_no_such_setting", "1"), engine.ClassFatal},
	} {
		_, err := pgx.Connect(t.Context(), c.dsn)
		if got := (dialect{}).Classify(err, ""); err == nil || got != c.want {
			t.Errorf("%v: class %d, want %d", err, got, c.want)
		}
		if _, err := Open(t.Context(), c.dsn); err == nil {
			t.Error("Open has no error")
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := pgx.Connect(ctx, dsn); (dialect{}).Classify(err, "") != engine.ClassRetryable {
		t.Errorf("%v", err)
	}
}

// A password in a DSN is in no error.
func TestOpenKeepsThePassword(t *testing.T) {
	for _, dsn := range []string{"postgres://u:s3cret@127.0.0.1:1/x?connect_timeout=1", "postgres://u:s3cret@127.0.0.1:port/x", "host=127.0.0.1 port=1 password=s3cret sslmode=what"} {
		_, err := Open(t.Context(), dsn)
		if err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%v", err)
		}
	}
	if _, err := Open(t.Context(), " "); err == nil {
		t.Error("an empty DSN is opened")
	}
	for _, opt := range []Option{nil, WithWait(0), WithConnections(0), WithStatementTimeout(-1), WithLockTimeout(1)} {
		if _, err := Open(t.Context(), "postgres://127.0.0.1/x", opt); err == nil {
			t.Error("a bad option is taken")
		}
		if _, err := New(nil, opt); err == nil {
			t.Error("a bad option is taken")
		}
	}
	if _, err := New(nil); err == nil {
		t.Error("no pool is taken")
	}
}
