package sample

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/memory"
	"github.com/google/go-cmp/cmp"
	"github.com/shopspring/decimal"
)

func TestEveryTypeComesBack(t *testing.T) {
	ctx := context.Background()
	now := time.Date(2024, 2, 29, 23, 59, 59, 123456000, time.UTC)
	eng, err := engine.New(memory.New(), engine.WithClock(func() time.Time { return now }))
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(ctx, eng)
	if err != nil {
		t.Fatal(err)
	}
	one := decimal.RequireFromString("1.25")
	full := NewSample{
		ID: "full", FBool: true, FBytes: []byte{0, 255}, FDecimal: one, FFloat: 0.1, FInt: -1, FJSON: json.RawMessage(`{"a":1}`),
		FString: "ü", FTime: now, NBool: new(true), NBytes: new([]byte{1}), NDecimal: new(one), NFloat: new(2.5), NInt: new(int64(7)),
		NJSON: new(json.RawMessage(`[]`)), NString: new(""), NTime: new(now), DnString: new("given"), DBool: new(false),
	}
	bare := NewSample{ID: "bare", FBytes: []byte{}, FJSON: json.RawMessage(`{}`), FTime: now}
	for _, n := range []NewSample{full, bare} {
		if _, err := m.Create(ctx, n); err != nil {
			t.Fatal(err)
		}
	}
	got, err := m.Get(ctx, "full")
	if err != nil {
		t.Fatal(err)
	}
	want := Sample{
		ID: "full", Status: StateRaw, Version: 1,
		FBool: true, FBytes: []byte{0, 255}, FDecimal: one, FFloat: 0.1, FInt: -1, FJSON: json.RawMessage(`{"a":1}`), FString: "ü", FTime: now,
		NBool: new(true), NBytes: new([]byte{1}), NDecimal: new(one), NFloat: new(2.5), NInt: new(int64(7)),
		NJSON: new(json.RawMessage(`[]`)), NString: new(""), NTime: new(now), DnString: new("given"),
		DString: `a, "quoted" default`, DInt: 7, DFloat: 0.5, DTime: now, DDecimal: decimal.RequireFromString("1.5"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got, err = m.Get(ctx, "bare")
	if err != nil || got.NBool != nil || got.NBytes != nil || got.NDecimal != nil || got.NJSON != nil || got.NTime != nil || *got.DnString != "both" || !got.DBool {
		t.Errorf("nullable fields and defaults: %+v, %v", got, err)
	}
	args := FinishArgs{ADecimal: one, ATime: now, ABytes: []byte{}, AJSON: json.RawMessage(`1`), OString: new("set")}
	if _, err := m.Finish(ctx, "full", args); err != nil {
		t.Fatal(err)
	}
	got, err = m.Get(ctx, "full")
	if err != nil || *got.NString != "set" || got.NTime != nil {
		t.Errorf("after finish: %+v, %v", got, err)
	}
}
