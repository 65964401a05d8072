package system_test

import (
	"context"

	"weir/internal/repair"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/system"
	"weir/internal/verify"
)

// hooked is a store whose writes are done by do: one after the other, a transaction as
// one, under the row that it begins with. After an error nothing more of the call is done.
type hooked struct {
	*embedded.Store
	do func(ref store.Ref, write func() error) error
}

func (h *hooked) Write(ctx context.Context, ws []store.Write) (out []store.Outcome, err error) {
	for _, w := range ws {
		err := h.do(w.Ref, func() error {
			one, err := h.Store.Write(ctx, []store.Write{w})
			out = append(out, one...)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (h *hooked) Transact(ctx context.Context, ws []store.Write) error {
	return h.do(ws[0].Ref, func() error { return h.Store.Transact(ctx, ws) })
}

// repairing is a repair of a system over db, by one who writes alone and through do.
func repairing(s *system.System, db *embedded.Store, do func(store.Ref, func() error) error, yield func(verify.Difference)) *repair.Repair {
	one := *s.Models[0].Runner
	one.Store, one.Alone = &hooked{db, do}, true
	return &repair.Repair{
		Verify: &verify.Verify{Model: one.Model, Store: db}, Runner: &one, Yield: yield,
		Passed: func(ctx context.Context) error { return catchUp(ctx, s) },
	}
}
