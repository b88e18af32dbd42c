package workflowtest

import (
	"context"
	"fmt"
	"testing"

	"github.com/fsmgen/fsmgen/engine"
)

// TestVotes: 32 callers on one row, each heard exactly once, although half of them say
// it twice.
func TestVotes(t *testing.T) {
	const callers, enough = 32, 20
	onEach(t, kinds(), func(s *site) {
		t := s.t
		s.create(t, s.m, engine.Row{"id": "a", "required": enough})
		calls := atOnce(callers+callers/2, func(i int) (engine.Result, error) {
			voter := fmt.Sprint("voter-", i%callers)
			return s.m.Fire(context.Background(), "approve", "a", engine.Args{"approver": voter, "round": 1})
		})
		outcomes := count(t, calls, engine.ErrNotAllowed) // late: the row is approved
		if outcomes[engine.Applied] != enough {
			t.Fatalf("%d votes were applied, want %d: %v", outcomes[engine.Applied], enough, outcomes)
		}
		crossed := 0
		for _, c := range calls {
			if c.Outcome == engine.Applied && c.To == "approved" {
				crossed++
			}
		}
		if crossed != 1 {
			t.Fatalf("%d calls crossed the threshold, want 1", crossed)
		}
		s.wantRow(t, s.m, "a", "approved", 1+enough, 1+enough, engine.Row{"approvals": int64(enough)})
		entries, err := s.m.Journal(t.Context(), "a")
		check(t, err)
		keys := map[string]bool{}
		for i, e := range entries {
			if e.Version != int64(i+1) || keys[e.Key] {
				t.Fatalf("entry %d is %+v", i, e)
			}
			keys[e.Key] = true
		}
	}, load(t, "approval"))
}

// TestVotesWithoutThreshold: where nothing ends the vote, all 32 count.
func TestVotesWithoutThreshold(t *testing.T) {
	onEach(t, kinds(), func(s *site) {
		t := s.t
		s.create(t, s.m, engine.Row{"id": "a", "required": 1000})
		calls := atOnce(32, func(i int) (engine.Result, error) {
			return s.m.Fire(context.Background(), "approve", "a", engine.Args{"approver": fmt.Sprint(i), "round": 1})
		})
		if n := count(t, calls, nil)[engine.Applied]; n != 32 {
			t.Fatalf("%d votes were applied, want 32", n)
		}
		s.wantRow(t, s.m, "a", "in_review", 33, 33, engine.Row{"approvals": int64(32)})
	}, load(t, "approval"))
}

// TestVoteNeverCounted: a key that was not seen is no duplicate, wherever the row is.
func TestVoteNeverCounted(t *testing.T) {
	onEach(t, kinds(), func(s *site) {
		t := s.t
		s.create(t, s.m, engine.Row{"id": "a", "required": 1})
		vote := func(by string) engine.Args { return engine.Args{"approver": by, "round": 1} }
		s.apply(t, s.m, "approve", "a", vote("ann"))
		s.refuse(t, engine.ErrNotAllowed, s.m, "approve", "a", vote("bob"))
		s.want(t, engine.Replayed, s.m, "approve", "a", vote("ann"))
		check(t, s.Insert(t.Context(), s.m.Definition(), engine.Row{"id": "b", "status": "approved", "version": int64(4), "required": int64(1), "approvals": int64(1), "round": int64(1)}))
		s.refuse(t, engine.ErrNotAllowed, s.m, "approve", "b", vote("ann"))
		s.apply(t, s.m, "reject", "a", nil)
		s.refuse(t, engine.ErrNotAllowed, s.m, "approve", "a", vote("bob"))
		s.want(t, engine.Replayed, s.m, "approve", "a", vote("ann"))
	}, load(t, "approval"))
}

// TestUndoneIsNotPassed: an approval that was taken back is no reason to call a late
// one a duplicate.
func TestUndoneIsNotPassed(t *testing.T) {
	onEach(t, kinds(), func(s *site) {
		t := s.t
		m := s.m
		s.create(t, m, engine.Row{"id": "a"})
		s.apply(t, m, "sign", "a", nil)
		s.want(t, engine.AlreadyReached, m, "sign", "a", nil)
		s.apply(t, m, "undo", "a", nil, engine.WithKey("1"))
		s.apply(t, m, "reject", "a", nil)
		s.refuse(t, engine.ErrNotAllowed, m, "sign", "a", nil)
		// Signed again after the undo, it counts again.
		s.create(t, m, engine.Row{"id": "b"})
		s.apply(t, m, "sign", "b", nil)
		s.apply(t, m, "undo", "b", nil, engine.WithKey("1"))
		s.apply(t, m, "sign", "b", nil)
		s.apply(t, m, "reject", "b", nil)
		s.want(t, engine.AlreadyPassed, m, "sign", "b", nil)
	}, load(t, "approval"))
}
