# Made by projector deploy template orders --format terraform. Make it again when the
# model changes, and read the difference.
# The packages of the functions hold the file of model orders as orders.yaml, beside the program bootstrap.

terraform {
  required_version = ">= 1.3"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.40"
    }
  }
}

variable "stage" {
  type        = string
  default     = "default"
  description = "The deployment, such as prod. weir's own table is weir in the stage default, and weir-STAGE in others."

  validation {
    condition     = can(regex("^[a-z0-9-]{1,32}$", var.stage))
    error_message = "It must match ^[a-z0-9-]{1,32}$."
  }
}

variable "make_own_table" {
  type        = bool
  default     = true
  description = "false if weir's own table of this stage exists already, made by another template or by deploy tables."
}

variable "make_registry" {
  type        = bool
  default     = true
  description = "Stages other than default note in the table weir which tables are theirs. false if that table exists already."
}

variable "orders_table_name" {
  type        = string
  default     = "orders"
  description = "The name of the model's table orders."

  validation {
    condition     = can(regex("^[A-Za-z0-9_.-]{3,255}$", var.orders_table_name))
    error_message = "It must match ^[A-Za-z0-9_.-]{3,255}$."
  }
}

variable "orders_stream_arn" {
  type        = string
  default     = ""
  description = "The stream of the table orders if it exists already, with new and old images. Empty: the template makes the table."

  validation {
    condition     = can(regex("^(arn:.+)?$", var.orders_stream_arn))
    error_message = "It must match ^(arn:.+)?$."
  }
}

variable "shop_customers_table_name" {
  type        = string
  default     = "Shop.Customers"
  description = "The name of the model's table Shop.Customers."

  validation {
    condition     = can(regex("^[A-Za-z0-9_.-]{3,255}$", var.shop_customers_table_name))
    error_message = "It must match ^[A-Za-z0-9_.-]{3,255}$."
  }
}

variable "shop_customers_stream_arn" {
  type        = string
  default     = ""
  description = "The stream of the table Shop.Customers if it exists already, with new and old images. Empty: the template makes the table."

  validation {
    condition     = can(regex("^(arn:.+)?$", var.shop_customers_stream_arn))
    error_message = "It must match ^(arn:.+)?$."
  }
}

variable "open_search_url" {
  type        = string
  description = "The URL of the OpenSearch cluster."
  sensitive   = true

  validation {
    condition     = can(regex("^https?://.+$", var.open_search_url))
    error_message = "It must match ^https?://.+$."
  }
}

variable "open_search_domain_arn" {
  type        = string
  default     = ""
  description = "The ARN of the domain, if it is one of Amazon OpenSearch Service."

  validation {
    condition     = can(regex("^(arn:.+)?$", var.open_search_domain_arn))
    error_message = "It must match ^(arn:.+)?$."
  }
}

variable "queries" {
  type        = bool
  default     = false
  description = "true for a function with a URL that answers the queries of each model. The URL asks IAM."
}

variable "derive_in" {
  type        = string
  default     = ""
  description = "The region that derives, if the tables are global tables."
}

variable "data_key_arn" {
  type        = string
  default     = ""
  description = "The KMS key of tables and queues. Empty: AWS owned keys."

  validation {
    condition     = can(regex("^(arn:.+)?$", var.data_key_arn))
    error_message = "It must match ^(arn:.+)?$."
  }
}

variable "log_key_arn" {
  type        = string
  default     = ""
  description = "The KMS key of log groups; its policy must allow CloudWatch Logs to use it. Empty: no key of yours."

  validation {
    condition     = can(regex("^(arn:.+)?$", var.log_key_arn))
    error_message = "It must match ^(arn:.+)?$."
  }
}

variable "log_retention_days" {
  type        = number
  default     = 30
  description = "How many days logs are kept."

  validation {
    condition     = contains([1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 3653], var.log_retention_days)
    error_message = "It must be one of 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 3653."
  }
}

variable "alarm_topic_arn" {
  type        = string
  default     = ""
  description = "The SNS topic that alarms notify. Empty: none."

  validation {
    condition     = can(regex("^(arn:.+)?$", var.alarm_topic_arn))
    error_message = "It must match ^(arn:.+)?$."
  }
}

variable "architecture" {
  type        = string
  default     = "arm64"
  description = "What the programs are built for."

  validation {
    condition     = contains(["arm64", "x86_64"], var.architecture)
    error_message = "It must be one of arm64, x86_64."
  }
}

variable "projector_code" {
  type        = string
  default     = "projector.zip"
  description = "The file with the projector's package."
}

variable "ingest_code" {
  type        = string
  default     = "ingest.zip"
  description = "The file with ingest's package."
}

data "aws_caller_identity" "current" {}

data "aws_partition" "current" {}

data "aws_region" "current" {}

locals {
  partition                 = data.aws_partition.current.partition
  region                    = data.aws_region.current.id
  account                   = data.aws_caller_identity.current.account_id
  is_default                = var.stage == "default"
  own_table                 = local.is_default ? "weir" : "weir-${var.stage}"
  table_arns                = "arn:${local.partition}:dynamodb:${local.region}:${local.account}:table"
  topics                    = var.alarm_topic_arn == "" ? [] : [var.alarm_topic_arn]
  data_key                  = var.data_key_arn == "" ? null : var.data_key_arn
  log_key                   = var.log_key_arn == "" ? null : var.log_key_arn
  orders_stream_arn         = coalesce(var.orders_stream_arn, one(aws_dynamodb_table.orders_table[*].stream_arn))
  shop_customers_stream_arn = coalesce(var.shop_customers_stream_arn, one(aws_dynamodb_table.shop_customers_table[*].stream_arn))
}

# weir's own table.
resource "aws_dynamodb_table" "weir_table" {
  count        = var.make_own_table ? 1 : 0
  name         = local.own_table
  billing_mode = "PAY_PER_REQUEST"
  hash_key     = "k"
  range_key    = "s"

  attribute {
    name = "k"
    type = "S"
  }

  attribute {
    name = "s"
    type = "S"
  }

  ttl {
    attribute_name = "x"
    enabled        = true
  }

  point_in_time_recovery {
    enabled = true
  }

  dynamic "server_side_encryption" {
    for_each = local.data_key[*]

    content {
      enabled     = true
      kms_key_arn = server_side_encryption.value
    }
  }

  lifecycle {
    prevent_destroy = true
  }
}

# Which stage each table belongs to; the own table of the stage default.
resource "aws_dynamodb_table" "registry_table" {
  count        = !local.is_default && var.make_registry ? 1 : 0
  name         = "weir"
  billing_mode = "PAY_PER_REQUEST"
  hash_key     = "k"
  range_key    = "s"

  attribute {
    name = "k"
    type = "S"
  }

  attribute {
    name = "s"
    type = "S"
  }

  ttl {
    attribute_name = "x"
    enabled        = true
  }

  point_in_time_recovery {
    enabled = true
  }

  dynamic "server_side_encryption" {
    for_each = local.data_key[*]

    content {
      enabled     = true
      kms_key_arn = server_side_encryption.value
    }
  }

  lifecycle {
    prevent_destroy = true
  }
}

# The model's table orders, unless it exists.
resource "aws_dynamodb_table" "orders_table" {
  count            = var.orders_stream_arn == "" ? 1 : 0
  name             = var.orders_table_name
  billing_mode     = "PAY_PER_REQUEST"
  hash_key         = "pk"
  range_key        = "sk"
  stream_enabled   = true
  stream_view_type = "NEW_AND_OLD_IMAGES"

  attribute {
    name = "day"
    type = "S"
  }

  attribute {
    name = "pk"
    type = "S"
  }

  attribute {
    name = "placed"
    type = "S"
  }

  attribute {
    name = "sk"
    type = "S"
  }

  global_secondary_index {
    name            = "byDay"
    hash_key        = "day"
    range_key       = "sk"
    projection_type = "ALL"
  }

  local_secondary_index {
    name            = "own-order"
    range_key       = "placed"
    projection_type = "ALL"
  }

  ttl {
    attribute_name = "gone"
    enabled        = true
  }

  point_in_time_recovery {
    enabled = true
  }

  dynamic "server_side_encryption" {
    for_each = local.data_key[*]

    content {
      enabled     = true
      kms_key_arn = server_side_encryption.value
    }
  }

  lifecycle {
    prevent_destroy = true
  }
}

# The model's table Shop.Customers, unless it exists.
resource "aws_dynamodb_table" "shop_customers_table" {
  count            = var.shop_customers_stream_arn == "" ? 1 : 0
  name             = var.shop_customers_table_name
  billing_mode     = "PAY_PER_REQUEST"
  hash_key         = "id"
  stream_enabled   = true
  stream_view_type = "NEW_AND_OLD_IMAGES"

  attribute {
    name = "id"
    type = "S"
  }

  point_in_time_recovery {
    enabled = true
  }

  dynamic "server_side_encryption" {
    for_each = local.data_key[*]

    content {
      enabled     = true
      kms_key_arn = server_side_encryption.value
    }
  }

  lifecycle {
    prevent_destroy = true
  }
}

# Which parts of streams Lambda gave up: records that are missing.
resource "aws_sqs_queue" "orders_failures" {
  name                      = "weir-${var.stage}-orders-failures"
  message_retention_seconds = 1209600
  kms_master_key_id         = local.data_key
  sqs_managed_sse_enabled   = local.data_key == null ? true : null
}

# Commands that were refused five times.
resource "aws_sqs_queue" "orders_refused_commands" {
  name                      = "weir-${var.stage}-orders-refused-commands"
  message_retention_seconds = 1209600
  kms_master_key_id         = local.data_key
  sqs_managed_sse_enabled   = local.data_key == null ? true : null
}

# Commands for model orders, one JSON object a message.
resource "aws_sqs_queue" "orders_commands" {
  name                       = "weir-${var.stage}-orders-commands"
  message_retention_seconds  = 1209600
  kms_master_key_id          = local.data_key
  sqs_managed_sse_enabled    = local.data_key == null ? true : null
  visibility_timeout_seconds = 180
  redrive_policy             = jsonencode({ deadLetterTargetArn = aws_sqs_queue.orders_refused_commands.arn, maxReceiveCount = 5 })
}

resource "aws_cloudwatch_log_group" "orders_rows" {
  name              = "/weir/${var.stage}/orders/rows"
  retention_in_days = var.log_retention_days
  kms_key_id        = local.log_key
}

data "aws_iam_policy_document" "orders_rows" {
  # Ledgers, positions, dead letters, the catalog and the state of indexes.
  statement {
    sid       = "OwnTable"
    actions   = ["dynamodb:BatchGetItem", "dynamodb:ConditionCheckItem", "dynamodb:DeleteItem", "dynamodb:DescribeTable", "dynamodb:PutItem", "dynamodb:Query", "dynamodb:UpdateItem"]
    resources = ["${local.table_arns}/${local.own_table}"]
  }

  # Which stage each table belongs to.
  dynamic "statement" {
    for_each = !local.is_default ? [1] : []

    content {
      sid       = "Registry"
      actions   = ["dynamodb:BatchGetItem", "dynamodb:UpdateItem"]
      resources = ["${local.table_arns}/weir"]

      condition {
        test     = "ForAllValues:StringEquals"
        variable = "dynamodb:LeadingKeys"
        values   = ["stage|${var.orders_table_name}", "stage|${var.shop_customers_table_name}"]
      }
    }
  }

  # The derived values, and the rows that they follow from.
  statement {
    sid       = "Tables"
    actions   = ["dynamodb:BatchGetItem", "dynamodb:ConditionCheckItem", "dynamodb:DeleteItem", "dynamodb:DescribeTable", "dynamodb:PutItem", "dynamodb:UpdateItem"]
    resources = ["${local.table_arns}/${var.orders_table_name}", "${local.table_arns}/${var.shop_customers_table_name}"]
  }

  # The documents.
  dynamic "statement" {
    for_each = var.open_search_domain_arn != "" ? [1] : []

    content {
      sid       = "Domain"
      actions   = ["es:ESHttpDelete", "es:ESHttpGet", "es:ESHttpHead", "es:ESHttpPost", "es:ESHttpPut"]
      resources = ["${var.open_search_domain_arn}/*"]
    }
  }

  # Lambda reads the streams for the function, which looks how far they are read.
  statement {
    sid       = "Streams"
    actions   = ["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator", "dynamodb:ListStreams"]
    resources = ["${local.table_arns}/${var.orders_table_name}/stream/*", "${local.table_arns}/${var.shop_customers_table_name}/stream/*"]
  }

  # Lambda reports what it gives up.
  statement {
    sid       = "Failures"
    actions   = ["sqs:SendMessage"]
    resources = [aws_sqs_queue.orders_failures.arn]
  }

  # Lambda writes the function's log.
  statement {
    sid       = "Log"
    actions   = ["logs:CreateLogStream", "logs:PutLogEvents"]
    resources = ["${aws_cloudwatch_log_group.orders_rows.arn}:*"]
  }

  # DynamoDB uses the key of a table for the function.
  dynamic "statement" {
    for_each = var.data_key_arn != "" ? [1] : []

    content {
      sid       = "DataKey"
      actions   = ["kms:CreateGrant", "kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey*", "kms:ReEncrypt*"]
      resources = [var.data_key_arn]

      condition {
        test     = "StringEquals"
        variable = "kms:ViaService"
        values   = ["dynamodb.${local.region}.amazonaws.com"]
      }
    }
  }

  # SQS encrypts what Lambda reports.
  dynamic "statement" {
    for_each = var.data_key_arn != "" ? [1] : []

    content {
      sid       = "QueueKey"
      actions   = ["kms:Decrypt", "kms:GenerateDataKey*"]
      resources = [var.data_key_arn]

      condition {
        test     = "StringEquals"
        variable = "kms:ViaService"
        values   = ["sqs.${local.region}.amazonaws.com"]
      }
    }
  }

  # Tables of other models and stages are not this one's to claim.
  statement {
    sid       = "OtherTables"
    effect    = "Deny"
    actions   = ["dynamodb:BatchWriteItem", "dynamodb:DeleteItem", "dynamodb:PutItem", "dynamodb:UpdateItem"]
    resources = ["${local.table_arns}/${local.own_table}"]

    condition {
      test     = "ForAnyValue:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["stage|*"]
    }

    condition {
      test     = "ForAnyValue:StringNotEquals"
      variable = "dynamodb:LeadingKeys"
      values   = ["stage|${var.orders_table_name}", "stage|${var.shop_customers_table_name}"]
    }
  }
}

resource "aws_iam_role" "orders_rows" {
  name               = "weir-${var.stage}-orders-rows"
  assume_role_policy = jsonencode({ Version = "2012-10-17", Statement = [{ Effect = "Allow", Action = "sts:AssumeRole", Principal = { Service = "lambda.amazonaws.com" } }] })
}

resource "aws_iam_role_policy" "orders_rows" {
  name   = "weir"
  role   = aws_iam_role.orders_rows.id
  policy = data.aws_iam_policy_document.orders_rows.json
}

# It derives the rows of model orders.
resource "aws_lambda_function" "orders_rows" {
  function_name    = "weir-${var.stage}-orders-rows"
  description      = "weir: derives the rows of model orders"
  filename         = var.projector_code
  source_code_hash = filebase64sha256(var.projector_code)
  runtime          = "provided.al2023"
  handler          = "bootstrap"
  architectures    = [var.architecture]
  memory_size      = 512
  timeout          = 60
  role             = aws_iam_role.orders_rows.arn
  depends_on       = [aws_dynamodb_table.weir_table, aws_dynamodb_table.registry_table]

  environment {
    variables = {
      WEIR_MODEL      = "/var/task/orders.yaml"
      WEIR_STAGE      = var.stage
      WEIR_TABLES     = "orders=${var.orders_table_name},Shop.Customers=${var.shop_customers_table_name}"
      WEIR_DERIVE_IN  = var.derive_in
      WEIR_OPENSEARCH = var.open_search_url
    }
  }

  logging_config {
    log_format = "Text"
    log_group  = aws_cloudwatch_log_group.orders_rows.name
  }
}

resource "aws_cloudwatch_event_rule" "orders_rows_tick" {
  name                = "weir-${var.stage}-orders-tick"
  description         = "Looks whether the streams are read, and goes on with long lists."
  schedule_expression = "rate(1 minute)"
}

resource "aws_cloudwatch_event_target" "orders_rows_tick" {
  rule = aws_cloudwatch_event_rule.orders_rows_tick.name
  arn  = aws_lambda_function.orders_rows.arn
}

resource "aws_lambda_permission" "orders_rows_tick" {
  function_name = aws_lambda_function.orders_rows.function_name
  action        = "lambda:InvokeFunction"
  principal     = "events.amazonaws.com"
  source_arn    = aws_cloudwatch_event_rule.orders_rows_tick.arn
}

resource "aws_lambda_event_source_mapping" "orders_rows_orders_stream" {
  function_name                      = aws_lambda_function.orders_rows.arn
  event_source_arn                   = local.orders_stream_arn
  starting_position                  = "TRIM_HORIZON"
  batch_size                         = 1000
  maximum_batching_window_in_seconds = 1
  tumbling_window_in_seconds         = 60
  parallelization_factor             = 1
  function_response_types            = ["ReportBatchItemFailures"]
  maximum_retry_attempts             = -1
  maximum_record_age_in_seconds      = -1
  depends_on                         = [aws_iam_role_policy.orders_rows]

  metrics_config {
    metrics = ["EventCount"]
  }

  destination_config {
    on_failure {
      destination_arn = aws_sqs_queue.orders_failures.arn
    }
  }
}

resource "aws_lambda_event_source_mapping" "orders_rows_shop_customers_stream" {
  function_name                      = aws_lambda_function.orders_rows.arn
  event_source_arn                   = local.shop_customers_stream_arn
  starting_position                  = "TRIM_HORIZON"
  batch_size                         = 1000
  maximum_batching_window_in_seconds = 1
  tumbling_window_in_seconds         = 60
  parallelization_factor             = 1
  function_response_types            = ["ReportBatchItemFailures"]
  maximum_retry_attempts             = -1
  maximum_record_age_in_seconds      = -1
  depends_on                         = [aws_iam_role_policy.orders_rows]

  metrics_config {
    metrics = ["EventCount"]
  }

  destination_config {
    on_failure {
      destination_arn = aws_sqs_queue.orders_failures.arn
    }
  }
}

resource "aws_cloudwatch_log_group" "orders_ingest" {
  name              = "/weir/${var.stage}/orders/ingest"
  retention_in_days = var.log_retention_days
  kms_key_id        = local.log_key
}

data "aws_iam_policy_document" "orders_ingest" {
  # Claims of unique values, and idempotency keys.
  statement {
    sid       = "OwnTable"
    actions   = ["dynamodb:BatchGetItem", "dynamodb:DeleteItem", "dynamodb:PutItem", "dynamodb:UpdateItem"]
    resources = ["${local.table_arns}/${local.own_table}"]
  }

  # Which stage each table belongs to.
  dynamic "statement" {
    for_each = !local.is_default ? [1] : []

    content {
      sid       = "Registry"
      actions   = ["dynamodb:BatchGetItem", "dynamodb:UpdateItem"]
      resources = ["${local.table_arns}/weir"]

      condition {
        test     = "ForAllValues:StringEquals"
        variable = "dynamodb:LeadingKeys"
        values   = ["stage|${var.orders_table_name}", "stage|${var.shop_customers_table_name}"]
      }
    }
  }

  # The rows that commands write.
  statement {
    sid       = "Tables"
    actions   = ["dynamodb:BatchGetItem", "dynamodb:ConditionCheckItem", "dynamodb:DeleteItem", "dynamodb:PutItem", "dynamodb:UpdateItem"]
    resources = ["${local.table_arns}/${var.orders_table_name}", "${local.table_arns}/${var.shop_customers_table_name}"]
  }

  # Whether another row has a unique value.
  statement {
    sid       = "Indexes"
    actions   = ["dynamodb:Query"]
    resources = ["${local.table_arns}/${var.orders_table_name}/index/*"]
  }

  # Lambda takes the messages of the queue.
  statement {
    sid       = "Commands"
    actions   = ["sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"]
    resources = [aws_sqs_queue.orders_commands.arn]
  }

  # Lambda writes the function's log.
  statement {
    sid       = "Log"
    actions   = ["logs:CreateLogStream", "logs:PutLogEvents"]
    resources = ["${aws_cloudwatch_log_group.orders_ingest.arn}:*"]
  }

  # DynamoDB uses the key of a table for the function.
  dynamic "statement" {
    for_each = var.data_key_arn != "" ? [1] : []

    content {
      sid       = "DataKey"
      actions   = ["kms:CreateGrant", "kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey*", "kms:ReEncrypt*"]
      resources = [var.data_key_arn]

      condition {
        test     = "StringEquals"
        variable = "kms:ViaService"
        values   = ["dynamodb.${local.region}.amazonaws.com"]
      }
    }
  }

  # SQS decrypts messages for the function.
  dynamic "statement" {
    for_each = var.data_key_arn != "" ? [1] : []

    content {
      sid       = "QueueKey"
      actions   = ["kms:Decrypt"]
      resources = [var.data_key_arn]

      condition {
        test     = "StringEquals"
        variable = "kms:ViaService"
        values   = ["sqs.${local.region}.amazonaws.com"]
      }
    }
  }

  # Tables of other models and stages are not this one's to claim.
  statement {
    sid       = "OtherTables"
    effect    = "Deny"
    actions   = ["dynamodb:BatchWriteItem", "dynamodb:DeleteItem", "dynamodb:PutItem", "dynamodb:UpdateItem"]
    resources = ["${local.table_arns}/${local.own_table}"]

    condition {
      test     = "ForAnyValue:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["stage|*"]
    }

    condition {
      test     = "ForAnyValue:StringNotEquals"
      variable = "dynamodb:LeadingKeys"
      values   = ["stage|${var.orders_table_name}", "stage|${var.shop_customers_table_name}"]
    }
  }
}

resource "aws_iam_role" "orders_ingest" {
  name               = "weir-${var.stage}-orders-ingest"
  assume_role_policy = jsonencode({ Version = "2012-10-17", Statement = [{ Effect = "Allow", Action = "sts:AssumeRole", Principal = { Service = "lambda.amazonaws.com" } }] })
}

resource "aws_iam_role_policy" "orders_ingest" {
  name   = "weir"
  role   = aws_iam_role.orders_ingest.id
  policy = data.aws_iam_policy_document.orders_ingest.json
}

# It takes the commands of model orders, over HTTP and from a queue.
resource "aws_lambda_function" "orders_ingest" {
  function_name    = "weir-${var.stage}-orders-ingest"
  description      = "weir: takes the commands of model orders, over HTTP and from a queue"
  filename         = var.ingest_code
  source_code_hash = filebase64sha256(var.ingest_code)
  runtime          = "provided.al2023"
  handler          = "bootstrap"
  architectures    = [var.architecture]
  memory_size      = 512
  timeout          = 30
  role             = aws_iam_role.orders_ingest.arn
  depends_on       = [aws_dynamodb_table.weir_table, aws_dynamodb_table.registry_table]

  environment {
    variables = {
      WEIR_MODEL  = "/var/task/orders.yaml"
      WEIR_STAGE  = var.stage
      WEIR_TABLES = "orders=${var.orders_table_name},Shop.Customers=${var.shop_customers_table_name}"
      WEIR_OPEN   = "1"
    }
  }

  logging_config {
    log_format = "Text"
    log_group  = aws_cloudwatch_log_group.orders_ingest.name
  }
}

# Requests are signed: the URL asks IAM.
resource "aws_lambda_function_url" "orders_ingest" {
  function_name      = aws_lambda_function.orders_ingest.function_name
  authorization_type = "AWS_IAM"
}

resource "aws_lambda_event_source_mapping" "orders_ingest_messages" {
  function_name                      = aws_lambda_function.orders_ingest.arn
  event_source_arn                   = aws_sqs_queue.orders_commands.arn
  batch_size                         = 100
  maximum_batching_window_in_seconds = 1
  function_response_types            = ["ReportBatchItemFailures"]
  depends_on                         = [aws_iam_role_policy.orders_ingest]
}

resource "aws_cloudwatch_log_group" "orders_query" {
  count             = var.queries ? 1 : 0
  name              = "/weir/${var.stage}/orders/query"
  retention_in_days = var.log_retention_days
  kms_key_id        = local.log_key
}

data "aws_iam_policy_document" "orders_query" {
  count = var.queries ? 1 : 0

  # The catalog, the state of indexes, and the secret of cursors.
  statement {
    sid       = "OwnTable"
    actions   = ["dynamodb:BatchGetItem"]
    resources = ["${local.table_arns}/${local.own_table}"]
  }

  # The first that needs the secret of cursors makes it.
  statement {
    sid       = "CursorSecret"
    actions   = ["dynamodb:PutItem"]
    resources = ["${local.table_arns}/${local.own_table}"]

    condition {
      test     = "ForAllValues:StringEquals"
      variable = "dynamodb:LeadingKeys"
      values   = ["secret"]
    }
  }

  # Which stage each table belongs to.
  dynamic "statement" {
    for_each = !local.is_default ? [1] : []

    content {
      sid       = "Registry"
      actions   = ["dynamodb:BatchGetItem"]
      resources = ["${local.table_arns}/weir"]

      condition {
        test     = "ForAllValues:StringEquals"
        variable = "dynamodb:LeadingKeys"
        values   = ["stage|${var.orders_table_name}", "stage|${var.shop_customers_table_name}"]
      }
    }
  }

  # The rows that are asked for.
  statement {
    sid       = "Tables"
    actions   = ["dynamodb:BatchGetItem", "dynamodb:DescribeTable", "dynamodb:Query"]
    resources = ["${local.table_arns}/${var.orders_table_name}", "${local.table_arns}/${var.shop_customers_table_name}"]
  }

  # The rows that are asked for by another key.
  statement {
    sid       = "Indexes"
    actions   = ["dynamodb:Query"]
    resources = ["${local.table_arns}/${var.orders_table_name}/index/*"]
  }

  # Searches.
  dynamic "statement" {
    for_each = var.open_search_domain_arn != "" ? [1] : []

    content {
      sid       = "Domain"
      actions   = ["es:ESHttpGet", "es:ESHttpHead", "es:ESHttpPost"]
      resources = ["${var.open_search_domain_arn}/*"]
    }
  }

  # Lambda writes the function's log.
  statement {
    sid       = "Log"
    actions   = ["logs:CreateLogStream", "logs:PutLogEvents"]
    resources = ["${aws_cloudwatch_log_group.orders_query[0].arn}:*"]
  }

  # DynamoDB uses the key of a table for the function.
  dynamic "statement" {
    for_each = var.data_key_arn != "" ? [1] : []

    content {
      sid       = "DataKey"
      actions   = ["kms:CreateGrant", "kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey*", "kms:ReEncrypt*"]
      resources = [var.data_key_arn]

      condition {
        test     = "StringEquals"
        variable = "kms:ViaService"
        values   = ["dynamodb.${local.region}.amazonaws.com"]
      }
    }
  }
}

resource "aws_iam_role" "orders_query" {
  count              = var.queries ? 1 : 0
  name               = "weir-${var.stage}-orders-query"
  assume_role_policy = jsonencode({ Version = "2012-10-17", Statement = [{ Effect = "Allow", Action = "sts:AssumeRole", Principal = { Service = "lambda.amazonaws.com" } }] })
}

resource "aws_iam_role_policy" "orders_query" {
  count  = var.queries ? 1 : 0
  name   = "weir"
  role   = aws_iam_role.orders_query[0].id
  policy = data.aws_iam_policy_document.orders_query[0].json
}

# It answers the queries of model orders.
resource "aws_lambda_function" "orders_query" {
  count            = var.queries ? 1 : 0
  function_name    = "weir-${var.stage}-orders-query"
  description      = "weir: answers the queries of model orders"
  filename         = var.projector_code
  source_code_hash = filebase64sha256(var.projector_code)
  runtime          = "provided.al2023"
  handler          = "bootstrap"
  architectures    = [var.architecture]
  memory_size      = 512
  timeout          = 30
  role             = aws_iam_role.orders_query[0].arn
  depends_on       = [aws_dynamodb_table.weir_table, aws_dynamodb_table.registry_table]

  environment {
    variables = {
      WEIR_MODEL      = "/var/task/orders.yaml"
      WEIR_STAGE      = var.stage
      WEIR_TABLES     = "orders=${var.orders_table_name},Shop.Customers=${var.shop_customers_table_name}"
      WEIR_OPEN       = "1"
      WEIR_QUERIES    = "1"
      WEIR_OPENSEARCH = var.open_search_url
    }
  }

  logging_config {
    log_format = "Text"
    log_group  = aws_cloudwatch_log_group.orders_query[0].name
  }
}

# Requests are signed: the URL asks IAM.
resource "aws_lambda_function_url" "orders_query" {
  count              = var.queries ? 1 : 0
  function_name      = aws_lambda_function.orders_query[0].function_name
  authorization_type = "AWS_IAM"
}

resource "aws_cloudwatch_metric_alarm" "orders_rows_age25" {
  alarm_name          = "weir-${var.stage}-orders-rows-age25"
  alarm_description   = "The function that derives the rows of model orders is behind by 25 % of the 24 hours that a stream keeps records. At 100 % records are lost. See Behind the stream in operations.md."
  namespace           = "AWS/Lambda"
  metric_name         = "IteratorAge"
  dimensions          = { FunctionName = aws_lambda_function.orders_rows.function_name }
  statistic           = "Maximum"
  period              = 60
  evaluation_periods  = 1
  threshold           = 21600000
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.topics
  ok_actions          = local.topics
}

resource "aws_cloudwatch_metric_alarm" "orders_rows_age50" {
  alarm_name          = "weir-${var.stage}-orders-rows-age50"
  alarm_description   = "The function that derives the rows of model orders is behind by 50 % of the 24 hours that a stream keeps records. At 100 % records are lost. See Behind the stream in operations.md."
  namespace           = "AWS/Lambda"
  metric_name         = "IteratorAge"
  dimensions          = { FunctionName = aws_lambda_function.orders_rows.function_name }
  statistic           = "Maximum"
  period              = 60
  evaluation_periods  = 1
  threshold           = 43200000
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.topics
  ok_actions          = local.topics
}

resource "aws_cloudwatch_metric_alarm" "orders_rows_age80" {
  alarm_name          = "weir-${var.stage}-orders-rows-age80"
  alarm_description   = "The function that derives the rows of model orders is behind by 80 % of the 24 hours that a stream keeps records. At 100 % records are lost. See Behind the stream in operations.md."
  namespace           = "AWS/Lambda"
  metric_name         = "IteratorAge"
  dimensions          = { FunctionName = aws_lambda_function.orders_rows.function_name }
  statistic           = "Maximum"
  period              = 60
  evaluation_periods  = 1
  threshold           = 69120000
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.topics
  ok_actions          = local.topics
}

resource "aws_cloudwatch_metric_alarm" "orders_rows_errors" {
  alarm_name          = "weir-${var.stage}-orders-rows-errors"
  alarm_description   = "The function that derives the rows of model orders fails for five minutes. Its log says why. See A function fails in operations.md."
  namespace           = "AWS/Lambda"
  metric_name         = "Errors"
  dimensions          = { FunctionName = aws_lambda_function.orders_rows.function_name }
  statistic           = "Sum"
  period              = 60
  evaluation_periods  = 5
  threshold           = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.topics
  ok_actions          = local.topics
}

resource "aws_cloudwatch_metric_alarm" "orders_rows_throttles" {
  alarm_name          = "weir-${var.stage}-orders-rows-throttles"
  alarm_description   = "The function that derives the rows of model orders is refused for five minutes: concurrency is used up. See A function is throttled in operations.md."
  namespace           = "AWS/Lambda"
  metric_name         = "Throttles"
  dimensions          = { FunctionName = aws_lambda_function.orders_rows.function_name }
  statistic           = "Sum"
  period              = 60
  evaluation_periods  = 5
  threshold           = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.topics
  ok_actions          = local.topics
}

resource "aws_cloudwatch_metric_alarm" "orders_rows_orders_lag" {
  alarm_name          = "weir-${var.stage}-orders-rows-orders-lag"
  alarm_description   = "Table orders is not read for 6 hours, or nothing says how far it is read (model orders): see Nothing is read in operations.md."
  namespace           = "weir"
  metric_name         = "Lag"
  dimensions          = merge(local.is_default ? {} : { Stage = var.stage }, { Model = "orders", Table = "orders" })
  statistic           = "Maximum"
  period              = 300
  evaluation_periods  = 3
  threshold           = 21600000
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "breaching"
  alarm_actions       = local.topics
  ok_actions          = local.topics
}

resource "aws_cloudwatch_metric_alarm" "orders_rows_orders_open_dead_letters" {
  alarm_name          = "weir-${var.stage}-orders-rows-orders-open-dead-letters"
  alarm_description   = "Records of table orders could not be applied, and wait (model orders): see Records cannot be applied in operations.md."
  namespace           = "weir"
  metric_name         = "OpenDeadLetters"
  dimensions          = merge(local.is_default ? {} : { Stage = var.stage }, { Model = "orders", Table = "orders" })
  statistic           = "Maximum"
  period              = 60
  evaluation_periods  = 1
  threshold           = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.topics
  ok_actions          = local.topics
}

resource "aws_cloudwatch_metric_alarm" "orders_rows_orders_refused" {
  alarm_name          = "weir-${var.stage}-orders-rows-orders-refused"
  alarm_description   = "Table orders refuses calls, so records of model orders wait: see A table refuses calls in operations.md."
  namespace           = "weir"
  metric_name         = "Refused"
  dimensions          = merge(local.is_default ? {} : { Stage = var.stage }, { Model = "orders", Table = "orders" })
  statistic           = "Sum"
  period              = 60
  evaluation_periods  = 1
  threshold           = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.topics
  ok_actions          = local.topics
}

resource "aws_cloudwatch_metric_alarm" "orders_rows_orders_out_of_order" {
  alarm_name          = "weir-${var.stage}-orders-rows-orders-out-of-order"
  alarm_description   = "Events of table orders were refused (model orders): see Events are out of order in operations.md."
  namespace           = "weir"
  metric_name         = "OutOfOrder"
  dimensions          = merge(local.is_default ? {} : { Stage = var.stage }, { Model = "orders", Table = "orders" })
  statistic           = "Sum"
  period              = 60
  evaluation_periods  = 1
  threshold           = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.topics
  ok_actions          = local.topics
}

resource "aws_cloudwatch_metric_alarm" "orders_rows_orders_dropped" {
  alarm_name          = "weir-${var.stage}-orders-rows-orders-dropped"
  alarm_description   = "Lambda gave up records of table orders (model orders): see Lambda gave records up in operations.md."
  namespace           = "AWS/Lambda"
  metric_name         = "DroppedEventCount"
  dimensions          = { EventSourceMappingUUID = aws_lambda_event_source_mapping.orders_rows_orders_stream.uuid }
  statistic           = "Sum"
  period              = 60
  evaluation_periods  = 1
  threshold           = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.topics
  ok_actions          = local.topics
}

resource "aws_cloudwatch_metric_alarm" "orders_rows_shop_customers_lag" {
  alarm_name          = "weir-${var.stage}-orders-rows-shop-customers-lag"
  alarm_description   = "Table Shop.Customers is not read for 6 hours, or nothing says how far it is read (model orders): see Nothing is read in operations.md."
  namespace           = "weir"
  metric_name         = "Lag"
  dimensions          = merge(local.is_default ? {} : { Stage = var.stage }, { Model = "orders", Table = "Shop.Customers" })
  statistic           = "Maximum"
  period              = 300
  evaluation_periods  = 3
  threshold           = 21600000
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "breaching"
  alarm_actions       = local.topics
  ok_actions          = local.topics
}

resource "aws_cloudwatch_metric_alarm" "orders_rows_shop_customers_open_dead_letters" {
  alarm_name          = "weir-${var.stage}-orders-rows-shop-customers-open-dead-letters"
  alarm_description   = "Records of table Shop.Customers could not be applied, and wait (model orders): see Records cannot be applied in operations.md."
  namespace           = "weir"
  metric_name         = "OpenDeadLetters"
  dimensions          = merge(local.is_default ? {} : { Stage = var.stage }, { Model = "orders", Table = "Shop.Customers" })
  statistic           = "Maximum"
  period              = 60
  evaluation_periods  = 1
  threshold           = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.topics
  ok_actions          = local.topics
}

resource "aws_cloudwatch_metric_alarm" "orders_rows_shop_customers_refused" {
  alarm_name          = "weir-${var.stage}-orders-rows-shop-customers-refused"
  alarm_description   = "Table Shop.Customers refuses calls, so records of model orders wait: see A table refuses calls in operations.md."
  namespace           = "weir"
  metric_name         = "Refused"
  dimensions          = merge(local.is_default ? {} : { Stage = var.stage }, { Model = "orders", Table = "Shop.Customers" })
  statistic           = "Sum"
  period              = 60
  evaluation_periods  = 1
  threshold           = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.topics
  ok_actions          = local.topics
}

resource "aws_cloudwatch_metric_alarm" "orders_rows_shop_customers_out_of_order" {
  alarm_name          = "weir-${var.stage}-orders-rows-shop-customers-out-of-order"
  alarm_description   = "Events of table Shop.Customers were refused (model orders): see Events are out of order in operations.md."
  namespace           = "weir"
  metric_name         = "OutOfOrder"
  dimensions          = merge(local.is_default ? {} : { Stage = var.stage }, { Model = "orders", Table = "Shop.Customers" })
  statistic           = "Sum"
  period              = 60
  evaluation_periods  = 1
  threshold           = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.topics
  ok_actions          = local.topics
}

resource "aws_cloudwatch_metric_alarm" "orders_rows_shop_customers_dropped" {
  alarm_name          = "weir-${var.stage}-orders-rows-shop-customers-dropped"
  alarm_description   = "Lambda gave up records of table Shop.Customers (model orders): see Lambda gave records up in operations.md."
  namespace           = "AWS/Lambda"
  metric_name         = "DroppedEventCount"
  dimensions          = { EventSourceMappingUUID = aws_lambda_event_source_mapping.orders_rows_shop_customers_stream.uuid }
  statistic           = "Sum"
  period              = 60
  evaluation_periods  = 1
  threshold           = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.topics
  ok_actions          = local.topics
}

resource "aws_cloudwatch_metric_alarm" "orders_ingest_errors" {
  alarm_name          = "weir-${var.stage}-orders-ingest-errors"
  alarm_description   = "The function that takes the commands of model orders, over HTTP and from a queue fails for five minutes. Its log says why. See A function fails in operations.md."
  namespace           = "AWS/Lambda"
  metric_name         = "Errors"
  dimensions          = { FunctionName = aws_lambda_function.orders_ingest.function_name }
  statistic           = "Sum"
  period              = 60
  evaluation_periods  = 5
  threshold           = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.topics
  ok_actions          = local.topics
}

resource "aws_cloudwatch_metric_alarm" "orders_ingest_throttles" {
  alarm_name          = "weir-${var.stage}-orders-ingest-throttles"
  alarm_description   = "The function that takes the commands of model orders, over HTTP and from a queue is refused for five minutes: concurrency is used up. See A function is throttled in operations.md."
  namespace           = "AWS/Lambda"
  metric_name         = "Throttles"
  dimensions          = { FunctionName = aws_lambda_function.orders_ingest.function_name }
  statistic           = "Sum"
  period              = 60
  evaluation_periods  = 5
  threshold           = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.topics
  ok_actions          = local.topics
}

resource "aws_cloudwatch_metric_alarm" "orders_query_errors" {
  count               = var.queries ? 1 : 0
  alarm_name          = "weir-${var.stage}-orders-query-errors"
  alarm_description   = "The function that answers the queries of model orders fails for five minutes. Its log says why. See A function fails in operations.md."
  namespace           = "AWS/Lambda"
  metric_name         = "Errors"
  dimensions          = { FunctionName = aws_lambda_function.orders_query[0].function_name }
  statistic           = "Sum"
  period              = 60
  evaluation_periods  = 5
  threshold           = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.topics
  ok_actions          = local.topics
}

resource "aws_cloudwatch_metric_alarm" "orders_query_throttles" {
  count               = var.queries ? 1 : 0
  alarm_name          = "weir-${var.stage}-orders-query-throttles"
  alarm_description   = "The function that answers the queries of model orders is refused for five minutes: concurrency is used up. See A function is throttled in operations.md."
  namespace           = "AWS/Lambda"
  metric_name         = "Throttles"
  dimensions          = { FunctionName = aws_lambda_function.orders_query[0].function_name }
  statistic           = "Sum"
  period              = 60
  evaluation_periods  = 5
  threshold           = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.topics
  ok_actions          = local.topics
}

resource "aws_cloudwatch_metric_alarm" "orders_failures_any" {
  alarm_name          = "weir-${var.stage}-orders-failures-any"
  alarm_description   = "Lambda gave up a part of a stream of model orders. Records are missing: see Lambda gave records up in operations.md."
  namespace           = "AWS/SQS"
  metric_name         = "ApproximateNumberOfMessagesVisible"
  dimensions          = { QueueName = aws_sqs_queue.orders_failures.name }
  statistic           = "Maximum"
  period              = 60
  evaluation_periods  = 1
  threshold           = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.topics
  ok_actions          = local.topics
}

resource "aws_cloudwatch_metric_alarm" "orders_refused_commands_any" {
  alarm_name          = "weir-${var.stage}-orders-refused-commands-any"
  alarm_description   = "Commands of model orders were refused. See Commands are refused in operations.md."
  namespace           = "AWS/SQS"
  metric_name         = "ApproximateNumberOfMessagesVisible"
  dimensions          = { QueueName = aws_sqs_queue.orders_refused_commands.name }
  statistic           = "Maximum"
  period              = 60
  evaluation_periods  = 1
  threshold           = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.topics
  ok_actions          = local.topics
}

resource "aws_cloudwatch_dashboard" "orders" {
  dashboard_name = "weir-${var.stage}-orders"

  dashboard_body = <<-EOT
    {"widgets": [
      {"type": "metric", "x": 0, "y": 0, "width": 12, "height": 6, "properties": {
        "title": "Behind the stream (ms, of 24 hours)", "region": "${local.region}", "period": 60, "view": "timeSeries",
        "annotations": {"horizontal": [{"label":"25 %","value":21600000},{"label":"50 %","value":43200000},{"label":"80 %","value":69120000}]},
        "metrics": [
          ["AWS/Lambda","IteratorAge","FunctionName","${aws_lambda_function.orders_rows.function_name}",{"label":"rows","stat":"Maximum"}]
        ]}},
      {"type": "metric", "x": 12, "y": 0, "width": 12, "height": 6, "properties": {
        "title": "Errors and throttles", "region": "${local.region}", "period": 60, "view": "timeSeries",
        "metrics": [
          ["AWS/Lambda","Errors","FunctionName","${aws_lambda_function.orders_rows.function_name}",{"label":"rows errors","stat":"Sum"}],
          ["AWS/Lambda","Throttles","FunctionName","${aws_lambda_function.orders_rows.function_name}",{"label":"rows throttles","stat":"Sum"}],
          ["AWS/Lambda","Errors","FunctionName","${aws_lambda_function.orders_ingest.function_name}",{"label":"ingest errors","stat":"Sum"}],
          ["AWS/Lambda","Throttles","FunctionName","${aws_lambda_function.orders_ingest.function_name}",{"label":"ingest throttles","stat":"Sum"}],
          ["AWS/Lambda","Errors","FunctionName","weir-${var.stage}-orders-query",{"label":"query errors","stat":"Sum"}],
          ["AWS/Lambda","Throttles","FunctionName","weir-${var.stage}-orders-query",{"label":"query throttles","stat":"Sum"}]
        ]}},
      {"type": "metric", "x": 0, "y": 6, "width": 12, "height": 6, "properties": {
        "title": "Duration (ms)", "region": "${local.region}", "period": 60, "view": "timeSeries",
        "metrics": [
          ["AWS/Lambda","Duration","FunctionName","${aws_lambda_function.orders_rows.function_name}",{"label":"rows","stat":"p99"}],
          ["AWS/Lambda","Duration","FunctionName","${aws_lambda_function.orders_ingest.function_name}",{"label":"ingest","stat":"p99"}],
          ["AWS/Lambda","Duration","FunctionName","weir-${var.stage}-orders-query",{"label":"query","stat":"p99"}]
        ]}},
      {"type": "metric", "x": 12, "y": 6, "width": 12, "height": 6, "properties": {
        "title": "Records that were applied", "region": "${local.region}", "period": 60, "view": "timeSeries",
        "metrics": [
          [{"expression": "SEARCH('{${local.is_default ? "weir,Model,Table" : "weir,Stage,Model,Table"}} ${local.is_default ? "" : "Stage=\\\"${var.stage}\\\" "}Model=\"orders\" MetricName=\"Applied\"', 'Sum')", "id": "e1"}]
        ]}},
      {"type": "metric", "x": 0, "y": 12, "width": 12, "height": 6, "properties": {
        "title": "Records that change nothing derived", "region": "${local.region}", "period": 60, "view": "timeSeries",
        "metrics": [
          [{"expression": "SEARCH('{${local.is_default ? "weir,Model,Table" : "weir,Stage,Model,Table"}} ${local.is_default ? "" : "Stage=\\\"${var.stage}\\\" "}Model=\"orders\" MetricName=\"Skipped\"', 'Sum')", "id": "e1"}]
        ]}},
      {"type": "metric", "x": 12, "y": 12, "width": 12, "height": 6, "properties": {
        "title": "Records that could not be applied", "region": "${local.region}", "period": 60, "view": "timeSeries",
        "metrics": [
          [{"expression": "SEARCH('{${local.is_default ? "weir,Model,Table" : "weir,Stage,Model,Table"}} ${local.is_default ? "" : "Stage=\\\"${var.stage}\\\" "}Model=\"orders\" MetricName=\"DeadLetters\"', 'Sum')", "id": "e1"}]
        ]}},
      {"type": "metric", "x": 0, "y": 18, "width": 12, "height": 6, "properties": {
        "title": "Records of an event", "region": "${local.region}", "period": 60, "view": "timeSeries",
        "metrics": [
          [{"expression": "SEARCH('{${local.is_default ? "weir,Model,Table" : "weir,Stage,Model,Table"}} ${local.is_default ? "" : "Stage=\\\"${var.stage}\\\" "}Model=\"orders\" MetricName=\"Records\"', 'Average')", "id": "e1"}]
        ]}},
      {"type": "metric", "x": 12, "y": 18, "width": 12, "height": 6, "properties": {
        "title": "What waits to be looked at", "region": "${local.region}", "period": 60, "view": "timeSeries",
        "metrics": [
          [{"expression": "SEARCH('{${local.is_default ? "weir,Model,Table" : "weir,Stage,Model,Table"}} ${local.is_default ? "" : "Stage=\\\"${var.stage}\\\" "}Model=\"orders\" MetricName=\"OpenDeadLetters\"', 'Maximum')", "id": "e1"}]
        ]}},
      {"type": "metric", "x": 0, "y": 24, "width": 12, "height": 6, "properties": {
        "title": "Records more than 20 hours old", "region": "${local.region}", "period": 60, "view": "timeSeries",
        "metrics": [
          [{"expression": "SEARCH('{${local.is_default ? "weir,Model,Table" : "weir,Stage,Model,Table"}} ${local.is_default ? "" : "Stage=\\\"${var.stage}\\\" "}Model=\"orders\" MetricName=\"Old\"', 'Sum')", "id": "e1"}]
        ]}},
      {"type": "metric", "x": 12, "y": 24, "width": 12, "height": 6, "properties": {
        "title": "Age of the oldest record of an event (milliseconds)", "region": "${local.region}", "period": 60, "view": "timeSeries",
        "metrics": [
          [{"expression": "SEARCH('{${local.is_default ? "weir,Model,Table" : "weir,Stage,Model,Table"}} ${local.is_default ? "" : "Stage=\\\"${var.stage}\\\" "}Model=\"orders\" MetricName=\"Age\"', 'Maximum')", "id": "e1"}]
        ]}},
      {"type": "metric", "x": 0, "y": 30, "width": 12, "height": 6, "properties": {
        "title": "Age of the oldest record that is not applied; every five minutes (milliseconds)", "region": "${local.region}", "period": 60, "view": "timeSeries",
        "metrics": [
          [{"expression": "SEARCH('{${local.is_default ? "weir,Model,Table" : "weir,Stage,Model,Table"}} ${local.is_default ? "" : "Stage=\\\"${var.stage}\\\" "}Model=\"orders\" MetricName=\"Lag\"', 'Maximum')", "id": "e1"}]
        ]}},
      {"type": "metric", "x": 12, "y": 30, "width": 12, "height": 6, "properties": {
        "title": "Events that come again because this table refused a call", "region": "${local.region}", "period": 60, "view": "timeSeries",
        "metrics": [
          [{"expression": "SEARCH('{${local.is_default ? "weir,Model,Table" : "weir,Stage,Model,Table"}} ${local.is_default ? "" : "Stage=\\\"${var.stage}\\\" "}Model=\"orders\" MetricName=\"Refused\"', 'Sum')", "id": "e1"}]
        ]}},
      {"type": "metric", "x": 0, "y": 36, "width": 12, "height": 6, "properties": {
        "title": "Write units", "region": "${local.region}", "period": 60, "view": "timeSeries",
        "metrics": [
          [{"expression": "SEARCH('{${local.is_default ? "weir,Model,Table" : "weir,Stage,Model,Table"}} ${local.is_default ? "" : "Stage=\\\"${var.stage}\\\" "}Model=\"orders\" MetricName=\"WriteUnits\"', 'Sum')", "id": "e1"}]
        ]}},
      {"type": "metric", "x": 12, "y": 36, "width": 12, "height": 6, "properties": {
        "title": "Writes that DynamoDB refused for now", "region": "${local.region}", "period": 60, "view": "timeSeries",
        "metrics": [
          [{"expression": "SEARCH('{${local.is_default ? "weir,Model,Table" : "weir,Stage,Model,Table"}} ${local.is_default ? "" : "Stage=\\\"${var.stage}\\\" "}Model=\"orders\" MetricName=\"Throttled\"', 'Sum')", "id": "e1"}]
        ]}},
      {"type": "metric", "x": 0, "y": 42, "width": 12, "height": 6, "properties": {
        "title": "For which writes waited for the write budget (milliseconds)", "region": "${local.region}", "period": 60, "view": "timeSeries",
        "metrics": [
          [{"expression": "SEARCH('{${local.is_default ? "weir,Model,Table" : "weir,Stage,Model,Table"}} ${local.is_default ? "" : "Stage=\\\"${var.stage}\\\" "}Model=\"orders\" MetricName=\"BudgetWait\"', 'Sum')", "id": "e1"}]
        ]}},
      {"type": "metric", "x": 12, "y": 42, "width": 12, "height": 6, "properties": {
        "title": "Records that come again", "region": "${local.region}", "period": 60, "view": "timeSeries",
        "metrics": [
          [{"expression": "SEARCH('{${local.is_default ? "weir,Model,Table" : "weir,Stage,Model,Table"}} ${local.is_default ? "" : "Stage=\\\"${var.stage}\\\" "}Model=\"orders\" MetricName=\"Again\"', 'Sum')", "id": "e1"}]
        ]}},
      {"type": "metric", "x": 0, "y": 48, "width": 12, "height": 6, "properties": {
        "title": "Events that were refused", "region": "${local.region}", "period": 60, "view": "timeSeries",
        "metrics": [
          [{"expression": "SEARCH('{${local.is_default ? "weir,Model,Table" : "weir,Stage,Model,Table"}} ${local.is_default ? "" : "Stage=\\\"${var.stage}\\\" "}Model=\"orders\" MetricName=\"OutOfOrder\"', 'Sum')", "id": "e1"}]
        ]}},
      {"type": "metric", "x": 12, "y": 48, "width": 12, "height": 6, "properties": {
        "title": "Queues (messages)", "region": "${local.region}", "period": 60, "view": "timeSeries",
        "metrics": [
          ["AWS/SQS","ApproximateNumberOfMessagesVisible","QueueName","${aws_sqs_queue.orders_commands.name}",{"label":"commands","stat":"Maximum"}],
          ["AWS/SQS","ApproximateNumberOfMessagesVisible","QueueName","${aws_sqs_queue.orders_refused_commands.name}",{"label":"refused commands","stat":"Maximum"}],
          ["AWS/SQS","ApproximateNumberOfMessagesVisible","QueueName","${aws_sqs_queue.orders_failures.name}",{"label":"given up by Lambda","stat":"Maximum"}]
        ]}}
    ]}
  EOT
}

output "orders_url" {
  description = "Where model orders takes writes over HTTP."
  value       = aws_lambda_function_url.orders_ingest.function_url
}

output "orders_queue" {
  description = "Where model orders takes commands."
  value       = aws_sqs_queue.orders_commands.url
}

output "orders_query_url" {
  description = "Where model orders answers queries, null without that function."
  value       = one(aws_lambda_function_url.orders_query[*].function_url)
}
