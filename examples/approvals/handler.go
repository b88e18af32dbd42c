package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/examples/approvals/approval"
)

// service answers HTTP requests with what the machine says.
type service struct{ approvals *approval.Machine }

// handler routes the requests of the service.
func handler(approvals *approval.Machine) http.Handler {
	s := service{approvals}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /approvals", answer(s.create))
	mux.HandleFunc("GET /approvals/{id}", answer(s.get))
	mux.HandleFunc("GET /approvals/{id}/journal", answer(s.journal))
	mux.HandleFunc("POST /approvals/{id}/approve", answer(s.approve))
	mux.HandleFunc("POST /approvals/{id}/reject", answer(s.reject))
	mux.HandleFunc("POST /approvals/{id}/reopen", answer(s.reopen))
	return mux
}

// vote is the body of approve and reject.
type vote struct {
	Approver string `json:"approver"`
	Round    int64  `json:"round"`
}

// outcome is the answer to a request that succeeded, now or before.
type outcome struct {
	ID      string         `json:"id"`
	Outcome string         `json:"outcome"`
	State   approval.State `json:"state"`
	Version int64          `json:"version"`
}

func outcomeOf(res approval.Result, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return outcome{res.ID, res.Outcome.String(), res.State, res.Version}, nil
}

func (s service) create(r *http.Request) (any, error) {
	body := struct {
		ID       string `json:"id"`
		Subject  string `json:"subject"`
		Required *int64 `json:"required"`
	}{}
	if err := decode(r, &body); err != nil {
		return nil, err
	}
	return outcomeOf(s.approvals.Create(r.Context(), approval.NewApproval{ID: body.ID, Subject: body.Subject, Required: body.Required}))
}

func (s service) get(r *http.Request) (any, error) {
	return s.approvals.Get(r.Context(), r.PathValue("id"))
}

func (s service) journal(r *http.Request) (any, error) {
	return s.approvals.Journal(r.Context(), r.PathValue("id"))
}

func (s service) approve(r *http.Request) (any, error) {
	var v vote
	if err := decode(r, &v); err != nil {
		return nil, err
	}
	return outcomeOf(s.approvals.Approve(r.Context(), r.PathValue("id"), approval.ApproveArgs{Approver: v.Approver, Round: v.Round}))
}

func (s service) reject(r *http.Request) (any, error) {
	var v vote
	if err := decode(r, &v); err != nil {
		return nil, err
	}
	return outcomeOf(s.approvals.Reject(r.Context(), r.PathValue("id"), approval.RejectArgs{Approver: v.Approver, Round: v.Round}))
}

func (s service) reopen(r *http.Request) (any, error) {
	return outcomeOf(s.approvals.Reopen(r.Context(), r.PathValue("id"), engine.WithKey(r.Header.Get("Idempotency-Key"))))
}

// errBody marks a request that could not be read.
var errBody = errors.New("the request body is not what this address takes")

func decode(r *http.Request, into any) error {
	d := json.NewDecoder(http.MaxBytesReader(nil, r.Body, 1<<16))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%w: %w", errBody, err)
	}
	return nil
}

// answer writes what a request gave. Work that has begun is not cancelled when the
// client hangs up: its answer would be lost, and with it the certainty.
func answer(do func(r *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := do(r.WithContext(context.WithoutCancel(r.Context())))
		status := http.StatusOK
		if err != nil {
			status, body = statusOf(err), map[string]string{"error": err.Error()}
		}
		if status == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "1")
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body) // the client may be gone
	}
}

// statusOf says what an error means over HTTP.
func statusOf(err error) int {
	switch {
	case errors.Is(err, errBody), errors.Is(err, engine.ErrInvalidArgs):
		return http.StatusBadRequest
	case errors.Is(err, engine.ErrNotFound):
		return http.StatusNotFound
	case errors.Is(err, engine.ErrRejected), errors.Is(err, engine.ErrNotAllowed), errors.Is(err, engine.ErrConflict),
		errors.Is(err, engine.ErrMismatch), errors.Is(err, engine.ErrKeyReused):
		return http.StatusConflict
	case errors.Is(err, engine.ErrBusy), errors.Is(err, engine.ErrUnknownOutcome):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}
