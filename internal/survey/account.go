package survey

import (
	"context"
	"errors"
	"maps"
	"net/url"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"weir/internal/doctor"
	"weir/internal/store/dynamodb"
)

// account asks AWS for the facts of an account beside its tables: the caller, and the functions that read a
// stream. It only reads, with the credentials of one configuration. It may be used by many goroutines.
// Nothing is remembered between calls: each asks again.
type account struct {
	cfg    aws.Config
	local  string // the endpoint of a DynamoDB that is not AWS's, "" for AWS
	sts    *sts.Client
	lambda *lambda.Client
}

// openAccount returns an account. It sends nothing. Where DynamoDB has an endpoint of its own, such as DynamoDB Local, the
// other services are asked only if they have one too: the account that the credentials name is not the one that matters.
func openAccount(cfg aws.Config) *account {
	a := &account{cfg: cfg}
	at := os.Getenv("AWS_ENDPOINT_URL_DYNAMODB")
	if u, err := url.Parse(at); err == nil && at != "" && !strings.HasSuffix(u.Hostname(), ".amazonaws.com") && !strings.HasSuffix(u.Hostname(), ".api.aws") {
		a.local = at
	}
	a.sts, a.lambda = sts.NewFromConfig(cfg), lambda.NewFromConfig(cfg)
	return a
}

// sayElsewhere names the need where DynamoDB is not AWS's and the service has no endpoint of its own; "" if it can be
// asked.
func (a *account) sayElsewhere(service string) string {
	if a.local == "" || os.Getenv("AWS_ENDPOINT_URL_"+service) != "" {
		return ""
	}
	return "AWS itself: " + a.local + " has tables alone"
}

// identity is who calls.
// Credentials that cannot be found, and a refused call, are Unknown with the need, and no
// error.
func (a *account) identity(ctx context.Context) doctor.Fact[doctor.Identity] {
	if _, err := a.cfg.Credentials.Retrieve(ctx); err != nil {
		return doctor.Not[doctor.Identity]("credentials: set AWS_PROFILE, AWS_ACCESS_KEY_ID or a role (" + err.Error() + ")")
	}
	if why := a.sayElsewhere("STS"); why != "" {
		return doctor.Not[doctor.Identity](why)
	}
	out, err := a.sts.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return doctor.Not[doctor.Identity](dynamodb.Needs("sts:GetCallerIdentity", err))
	}
	return doctor.Known(doctor.Identity{ARN: aws.ToString(out.Arn), Region: a.cfg.Region})
}

// mappings are the functions on a stream, in the order in which Lambda lists them.
// They include disabled mappings, and those of functions that are no programs of weir. An empty
// list says that no function is on the stream.
func (a *account) mappings(ctx context.Context, stream string) doctor.Fact[[]doctor.Mapping] {
	if why := a.sayElsewhere("LAMBDA"); why != "" {
		return doctor.Not[[]doctor.Mapping](why)
	}
	all := []doctor.Mapping{}
	pages := lambda.NewListEventSourceMappingsPaginator(a.lambda, &lambda.ListEventSourceMappingsInput{EventSourceArn: &stream})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return doctor.Not[[]doctor.Mapping](dynamodb.Needs("lambda:ListEventSourceMappings", err))
		}
		for i := range page.EventSourceMappings {
			all = append(all, a.mapping(ctx, &page.EventSourceMappings[i]))
		}
	}
	return doctor.Known(all)
}

// mapping is one mapping, with the configuration of its function.
// A function that is gone has a program without a model. If its configuration may not be read, the
// program is Unknown: the function may be weir's.
func (a *account) mapping(ctx context.Context, m *types.EventSourceMappingConfiguration) doctor.Mapping {
	name := aws.ToString(m.FunctionArn)
	out := doctor.Mapping{
		ID: aws.ToString(m.UUID), Function: functionOf(name), State: aws.ToString(m.State), Last: aws.ToString(m.LastProcessingResult),
		Batch: int(aws.ToInt32(m.BatchSize)), Tumbling: int(aws.ToInt32(m.TumblingWindowInSeconds)),
		Parallel: int(aws.ToInt32(m.ParallelizationFactor)), Retries: unlimited(m.MaximumRetryAttempts), MaxAge: unlimited(m.MaximumRecordAgeInSeconds),
		Filters: m.FilterCriteria != nil && len(m.FilterCriteria.Filters) > 0 || m.FilterCriteriaError != nil, // Lambda cannot decrypt them
	}
	for _, t := range m.FunctionResponseTypes {
		out.Partial = out.Partial || t == types.FunctionResponseTypeReportBatchItemFailures
	}
	if d := m.DestinationConfig; d != nil && d.OnFailure != nil {
		out.Failures = aws.ToString(d.OnFailure.Destination)
	}
	out.Program = a.program(ctx, name)
	return out
}

// functionOf is the name in the ARN of a function, without the alias or version behind it.
func functionOf(arn string) string {
	parts := strings.Split(arn, ":")
	return parts[min(6, len(parts)-1)]
}

// program is the configuration of a function.
func (a *account) program(ctx context.Context, arn string) doctor.Fact[doctor.Program] {
	is, err := a.lambda.GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: &arn})
	var gone *types.ResourceNotFoundException
	switch {
	case errors.As(err, &gone):
		return doctor.Known(doctor.Program{})
	case err != nil:
		return doctor.Not[doctor.Program](dynamodb.Needs("lambda:GetFunctionConfiguration", err))
	}
	p := doctor.Program{Timeout: int(aws.ToInt32(is.Timeout)), Memory: int(aws.ToInt32(is.MemorySize)), Log: "/aws/lambda/" + functionOf(arn), Reserved: doctor.Known(-1)}
	if is.Environment != nil {
		p.Model = is.Environment.Variables["WEIR_MODEL"]
	}
	if is.LoggingConfig != nil && aws.ToString(is.LoggingConfig.LogGroup) != "" {
		p.Log = *is.LoggingConfig.LogGroup
	}
	if p.Model == "" {
		return doctor.Known(p)
	}
	name := functionOf(arn)
	if reserved, err := a.lambda.GetFunctionConcurrency(ctx, &lambda.GetFunctionConcurrencyInput{FunctionName: &name}); err != nil {
		p.Reserved = doctor.Not[int](dynamodb.Needs("lambda:GetFunctionConcurrency", err))
	} else if reserved.ReservedConcurrentExecutions != nil {
		p.Reserved = doctor.Known(int(*reserved.ReservedConcurrentExecutions))
	}
	if _, alias, has := strings.Cut(arn, ":function:"+name+":"); has {
		latest, err := a.lambda.GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: &name})
		if err == nil && !sameProgram(is, latest) {
			p.Behind = alias
		}
	}
	return doctor.Known(p)
}

// sameProgram reports whether a version has the code and the configuration of the function as it is now.
func sameProgram(a, b *lambda.GetFunctionConfigurationOutput) bool {
	vars := func(c *lambda.GetFunctionConfigurationOutput) map[string]string {
		if c.Environment == nil {
			return nil
		}
		return c.Environment.Variables
	}
	return aws.ToString(a.CodeSha256) == aws.ToString(b.CodeSha256) && maps.Equal(vars(a), vars(b)) &&
		aws.ToInt32(a.Timeout) == aws.ToInt32(b.Timeout) && aws.ToInt32(a.MemorySize) == aws.ToInt32(b.MemorySize)
}

// concurrency is the account's limit.
func (a *account) concurrency(ctx context.Context) doctor.Fact[doctor.Concurrency] {
	if why := a.sayElsewhere("LAMBDA"); why != "" {
		return doctor.Not[doctor.Concurrency](why)
	}
	out, err := a.lambda.GetAccountSettings(ctx, &lambda.GetAccountSettingsInput{})
	if err != nil || out.AccountLimit == nil {
		return doctor.Not[doctor.Concurrency](dynamodb.Needs("lambda:GetAccountSettings", err))
	}
	return doctor.Known(doctor.Concurrency{Limit: int(out.AccountLimit.ConcurrentExecutions), Unreserved: int(aws.ToInt32(out.AccountLimit.UnreservedConcurrentExecutions))})
}

// unlimited is a limit of Lambda's, whose default is none.
// unlimited uses -1 for no limit, as Lambda's API does.
func unlimited(n *int32) int {
	if n == nil {
		return -1
	}
	return int(*n)
}
