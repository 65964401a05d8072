package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"weir/internal/interrupt"
	"weir/internal/model"
	"weir/internal/stage"
	"weir/internal/store"
	"weir/internal/system"
)

// LoadModel loads a model, a built-in one or a file, unless ctx is done before: a file
// may be a pipe, or take long to check.
func LoadModel(ctx context.Context, name string) (*model.Model, error) {
	return interrupt.Do(ctx, func() (*model.Model, error) { return model.Load(name) })
}

// Load loads models, built-in ones or files.
// Models come in the order of the names. The first that cannot be loaded is the error.
func Load(ctx context.Context, names []string) (models []*model.Model, err error) {
	for i, n := range names {
		if slices.Contains(names[:i], n) {
			return nil, Usage("the model %s is named twice", n)
		}
		m, err := LoadModel(ctx, n)
		if err != nil {
			return nil, err
		}
		models = append(models, m)
	}
	return models, nil
}

// Deployer is the store of the models' tables where these are made apart, nil elsewhere,
// and the names of the tables there.
// The caller closes a store that is not nil. Mistakes in the flags are usage errors.
func Deployer(ctx context.Context, at system.Place, models []*model.Model) (store.Deployer, stage.Names, error) {
	tables, err := system.Tables(models)
	if err != nil {
		return nil, stage.Names{}, Usage("%v", err)
	}
	db, names, err := at.Deployer(ctx, tables)
	return db, names, usageOf(err)
}

// Names are the names that the models' tables have in the place.
func Names(at system.Place, models []*model.Model) (stage.Names, error) {
	tables, err := system.Tables(models)
	if err != nil {
		return stage.Names{}, Usage("%v", err)
	}
	names, err := at.Names(tables)
	return names, usageOf(err)
}

// usageOf makes a usage error of one of the configuration.
func usageOf(err error) error {
	if errors.Is(err, system.ErrConfig) || errors.Is(err, stage.ErrTaken) || errors.Is(err, model.ErrFunction) {
		return Usage("%v", err)
	}
	return err
}

// Open loads models and opens their rows and documents where they are.
// The caller closes the system. A table that is missing is a usage error with the command that makes it.
func Open(ctx context.Context, at system.Place, names []string, o system.Options) (*system.System, error) {
	models, err := Load(ctx, names)
	if err != nil {
		return nil, err
	}
	return OpenModels(ctx, at, models, o)
}

// OpenNamed is Open for one model whose file may be gone. gone says that it is: then nothing of the
// model is known but its name and its catalog (model.Named). A name for which
// there is neither a file nor a catalog is the error of Open.
func OpenNamed(ctx context.Context, at system.Place, name string, o system.Options) (s *system.System, gone bool, err error) {
	m, missing := LoadModel(ctx, name)
	if errors.Is(missing, fs.ErrNotExist) {
		m, gone = model.Named(name)
	}
	if missing != nil && !gone {
		return nil, false, missing
	}
	if s, err = OpenModels(ctx, at, []*model.Model{m}, o); err != nil || !gone {
		return s, gone, err
	}
	row, err := s.Models[0].Runner.Catalog.Row(ctx)
	if err == nil && row.Count == 0 {
		err = fmt.Errorf("%w; nor does weir's own table have a catalog of a model %s", missing, name)
	}
	if err != nil {
		return nil, false, errors.Join(err, s.Close())
	}
	return s, true, nil
}

// Flags are the flags with which a user opens rows in the place; see model.Model.Command.
func Flags(at system.Place, o system.Options) []model.Flag {
	flags := at.Flags()
	if o.DeriveIn != "" {
		flags = append(flags, model.Flag{Name: "derive-in", Value: o.DeriveIn})
	}
	return flags
}

// OpenModels is Open for models that are loaded.
func OpenModels(ctx context.Context, at system.Place, models []*model.Model, o system.Options) (*system.System, error) {
	for _, m := range models {
		m.Flags = Flags(at, o)
	}
	if _, err := system.Tables(models); err != nil {
		return nil, Usage("%v", err)
	}
	s, err := system.OpenAt(ctx, at, models, o)
	if errors.Is(err, store.ErrNoTable) && at.Store().Deploys() {
		return nil, Usage("a table does not exist, the model's or weir's own: %v; %s makes what is missing, and changes nothing else", err, models[0].Command("deploy tables"))
	}
	if url := ServerOf(err, at.Directory()); url != "" {
		err = fmt.Errorf("%w; it serves at %s, where its console verifies and explains values", err, url)
	}
	if err == nil && !at.AWS { // this process has the directory, so nothing serves there yet
		noServer(at.Directory())
	}
	return s, usageOf(err)
}
