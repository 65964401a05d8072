package dynamodb

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go/logging"
)

// TestLogTo: a line of the SDK is one of the log.
func TestLogTo(t *testing.T) {
	var out bytes.Buffer
	var cfg aws.Config
	LogTo(&cfg, slog.New(slog.NewJSONHandler(&out, nil)))
	cfg.Logger.Logf(logging.Warn, "no checksum of %s", "an answer")
	cfg.Logger.Logf(logging.Debug, "request")
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `"level":"WARN"`) || !strings.Contains(got, `"msg":"AWS SDK: no checksum of an answer"`) {
		t.Error(got)
	}
}
