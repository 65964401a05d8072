package ingestcli

import (
	"context"
	"io"
	"log/slog"
	"os"
	"strings"

	runtime "github.com/aws/aws-lambda-go/lambda"

	"weir/internal/cli"
	"weir/internal/measures"
	"weir/internal/system"
	"weir/internal/web"
	"weir/internal/writeapi"
)

// The environment of a function, beside the keys of HTTP requests (web.EnvKeys).
const (
	envModel = "WEIR_MODEL" // built-in names or paths, with commas between; one where messages of a queue come
	envOpen  = "WEIR_OPEN"  // 1: IAM or an authorizer decides before the function which requests are allowed
	envData  = "WEIR_DATA"  // an embedded store instead of DynamoDB, for tests
)

// serveLambda handles events until Lambda ends the process.
func serveLambda(ctx context.Context, stderr io.Writer) int {
	p := &program{ctx: ctx, stderr: stderr}
	h, s, err := p.newHandler()
	if err != nil {
		return p.reportFailure(err)
	}
	defer s.Close()
	runtime.StartWithOptions(h, runtime.WithContext(ctx))
	return cli.Good
}

// newHandler makes the function's handler from its environment, and opens the system, which the caller closes. Messages
// of a queue are only taken if the function has one model, since a message names none.
func (p *program) newHandler() (*writeapi.Lambda, *system.System, error) {
	names := strings.FieldsFunc(os.Getenv(envModel), func(r rune) bool { return r == ',' || r == ' ' })
	if len(names) == 0 {
		return nil, nil, cli.Usage("%s is not set: it names the model, a built-in one or a path", envModel)
	}
	log := measures.JSON(p.stderr, slog.LevelInfo)
	keys, err := web.OpenKeys("", os.Getenv(web.EnvKeys), log)
	if err != nil {
		return nil, nil, cli.Usage("%v", err)
	}
	in, err := cli.StageOfEnvironment()
	if err != nil {
		return nil, nil, err
	}
	s, err := p.openTables(data{Data: os.Getenv(envData), AWS: os.Getenv(envData) == "", StageFlags: in}, names)
	if err != nil {
		return nil, nil, err
	}
	api, err := writeAPI(s, keys != nil, log)
	if err != nil {
		s.Close()
		return nil, nil, cli.Usage("%v", err)
	}
	h := &writeapi.Lambda{HTTP: web.Access{Keys: keys, Open: os.Getenv(envOpen) == "1"}.Wrap(api), Log: log}
	if all := targets(s); len(all) == 1 {
		h.Queue, h.Model = all[0].Writer, all[0].Model
	}
	return h, s, nil
}
