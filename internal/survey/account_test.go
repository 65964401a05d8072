package survey

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"weir/internal/doctor"
)

// world answers as STS and Lambda do. A path that it does not know is denied.
func world(t *testing.T, answers map[string]string) *account {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.Path
		if strings.Contains(path, "/functions/") {
			path = strings.TrimPrefix(path[strings.Index(path, "/functions/")+len("/functions/"):], "arn:aws:lambda:eu-west-1:1:function:")
		}
		body, ok := answers[path]
		if !ok {
			w.Header().Set("X-Amzn-ErrorType", "AccessDeniedException")
			w.WriteHeader(http.StatusForbidden)
			body = `{"message":"no"}`
			if r.URL.Path == "/" {
				body = `<ErrorResponse><Error><Code>AccessDenied</Code><Message>no</Message></Error></ErrorResponse>`
			}
		}
		w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", "")
	return openAccount(aws.Config{Region: "eu-west-1", BaseEndpoint: &server.URL, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")})
}

const (
	caller   = `<GetCallerIdentityResponse><GetCallerIdentityResult><Arn>arn:aws:iam::1:user/me</Arn><Account>1</Account></GetCallerIdentityResult></GetCallerIdentityResponse>`
	mappings = `{"EventSourceMappings":[{"UUID":"u1","FunctionArn":"arn:aws:lambda:eu-west-1:1:function:rows:live","State":"Enabled","BatchSize":1000,"MaximumBatchingWindowInSeconds":1,
"TumblingWindowInSeconds":60,"ParallelizationFactor":1,"MaximumRetryAttempts":-1,"MaximumRecordAgeInSeconds":-1,"FunctionResponseTypes":["ReportBatchItemFailures"],
"DestinationConfig":{"OnFailure":{"Destination":"arn:q"}},"LastProcessingResult":"OK"},
{"UUID":"u2","FunctionArn":"arn:aws:lambda:eu-west-1:1:function:other","State":"Disabled","MaximumRetryAttempts":3,
"FilterCriteria":{"Filters":[{"Pattern":"{}"}]}},
{"UUID":"u3","FunctionArn":"arn:aws:lambda:eu-west-1:1:function:third","FilterCriteria":{"Filters":[]}},
{"UUID":"u4","FunctionArn":"arn:aws:lambda:eu-west-1:1:function:fourth","FilterCriteriaError":{"ErrorCode":"KMS"}}]}`
	rows = `{"FunctionName":"rows","Timeout":60,"MemorySize":512,"CodeSha256":"c","LoggingConfig":{"LogGroup":"/weir/prod/m/rows"},"Environment":{"Variables":{"WEIR_MODEL":"m","WEIR_STAGE":"prod"}}}`
)

// TestIdentity: who calls, or the permission that is needed to know.
func TestIdentity(t *testing.T) {
	is := world(t, map[string]string{"/": caller}).identity(t.Context())
	if is.Unknown != "" || is.Is.ARN != "arn:aws:iam::1:user/me" || is.Is.Region != "eu-west-1" {
		t.Errorf("%+v", is)
	}
	if is = world(t, nil).identity(t.Context()); is.Unknown != "the permission sts:GetCallerIdentity" {
		t.Errorf("%+v", is)
	}
}

// TestConcurrency: the account's limits, or the permission that is needed to know.
func TestConcurrency(t *testing.T) {
	is := world(t, map[string]string{"/2016-08-19/account-settings": `{"AccountLimit":{"ConcurrentExecutions":1000,"UnreservedConcurrentExecutions":900}}`,
		"/2016-08-19/account-settings/": `{"AccountLimit":{"ConcurrentExecutions":1000,"UnreservedConcurrentExecutions":900}}`}).concurrency(t.Context())
	if is != doctor.Known(doctor.Concurrency{Limit: 1000, Unreserved: 900}) {
		t.Errorf("%+v", is)
	}
	if is = world(t, nil).concurrency(t.Context()); is.Unknown != "the permission lambda:GetAccountSettings" {
		t.Errorf("%+v", is)
	}
}

// TestMappings: settings as Lambda says them; a function that may not be asked is not taken for another program.
func TestMappings(t *testing.T) {
	all := world(t, map[string]string{"/2015-03-31/event-source-mappings": mappings, "/2015-03-31/event-source-mappings/": mappings,
		"rows:live/configuration": rows, "rows/configuration": strings.Replace(rows, "512", "256", 1), "rows/concurrency": `{"ReservedConcurrentExecutions":7}`}).mappings(t.Context(), "arn:s")
	if all.Unknown != "" || len(all.Is) != 4 {
		t.Fatalf("%+v", all)
	}
	want := doctor.Mapping{ID: "u1", Function: "rows", State: "Enabled", Batch: 1000, Tumbling: 60, Parallel: 1, Retries: -1, MaxAge: -1, Partial: true, Failures: "arn:q", Last: "OK",
		Program: doctor.Known(doctor.Program{Model: "m", Timeout: 60, Memory: 512, Log: "/weir/prod/m/rows", Reserved: doctor.Known(7), Behind: "live"})}
	if all.Is[0] != want {
		t.Errorf("%+v\n%+v", all.Is[0], want)
	}
	if !all.Is[1].Filters || all.Is[2].Filters || !all.Is[3].Filters {
		t.Errorf("%+v", all.Is[1:])
	}
	if is := all.Is[1]; is.Retries != 3 || is.MaxAge != -1 || is.Partial || is.Program.Unknown != "the permission lambda:GetFunctionConfiguration" {
		t.Errorf("%+v", is)
	}
	if all = world(t, nil).mappings(t.Context(), "arn:s"); all.Unknown != "the permission lambda:ListEventSourceMappings" {
		t.Errorf("%+v", all)
	}
}

// TestElsewhere: where DynamoDB is not AWS's, the account of the credentials is not asked about another one's tables.
func TestElsewhere(t *testing.T) {
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:1")
	a := openAccount(aws.Config{Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")})
	if is := a.identity(t.Context()); !strings.HasPrefix(is.Unknown, "AWS itself: http://127.0.0.1:1") {
		t.Errorf("%+v", is)
	}
	if is := a.mappings(t.Context(), "arn:s"); !strings.HasPrefix(is.Unknown, "AWS itself: http://127.0.0.1:1") {
		t.Errorf("%+v", is)
	}
}
