"""References for the oracle's tests, as KernelBench files; small, and with odd sizes."""

from __future__ import annotations

from oracle_bench import source_of

SOFTMAX = source_of("return torch.softmax(x, -1)", "torch.randn(80, 500)", args="self, x")
LAYER_NORM = source_of(
    "return self.norm(x)",
    "torch.randn(64, 700)",
    init="self.norm = nn.LayerNorm(700)",
    args="self, x",
)
RMS_NORM = source_of(
    "return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.w",
    "torch.randn(64, 700)",
    init="self.w = nn.Parameter(torch.ones(700))",
    args="self, x",
)
GELU = source_of("return F.gelu(x)", "torch.randn(64, 500)", args="self, x")
TANH = source_of("return torch.tanh(x)", "torch.randn(64, 500)", args="self, x")
MATMUL = source_of("return a @ b", "torch.randn(72, 600), torch.randn(600, 56)", args="self, a, b")
MATMUL_BF16 = source_of(
    "return a @ b",
    "torch.randn(72, 640).bfloat16(), torch.randn(640, 56).bfloat16()",
    args="self, a, b",
)
MATMUL_FP16 = source_of(
    "return a @ b", "torch.randn(72, 640).half(), torch.randn(640, 56).half()", args="self, a, b"
)
SUM = source_of("return x.sum(-1)", "torch.rand(64, 3000)", args="self, x")
MSE = source_of(
    "return F.mse_loss(a, b)", "torch.rand(300, 500), torch.rand(300, 500)", args="self, a, b"
)
CONV = source_of(
    "return self.c(x)",
    "torch.randn(2, 16, 16, 16)",
    init="self.c = nn.Conv2d(16, 8, 3, padding=1)",
    args="self, x",
)
CUMSUM = source_of("return torch.cumsum(x, 1)", "torch.randn(32, 2000)", args="self, x")
ATTENTION = source_of(
    """
    s = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    i = torch.arange(q.shape[-2])[:, None]
    j = torch.arange(k.shape[-2])[None, :]
    return torch.softmax(s + (i - j), -1) @ v
    """,
    "torch.randn(2, 256, 32), torch.randn(2, 256, 32), torch.randn(2, 256, 32)",
    args="self, q, k, v",
)
ATTENTION_BF16 = source_of(
    "return F.scaled_dot_product_attention(q, k, v)",
    ", ".join(["torch.randn(2, 2, 192, 64).bfloat16()"] * 3),
    args="self, q, k, v",
)
EMBEDDING = source_of(
    "return self.e(i)",
    "torch.randint(0, 500, (64, 50))",
    init="self.e = nn.Embedding(500, 64)",
    args="self, i",
)
CROSS_ENTROPY = source_of(
    "return F.cross_entropy(x, t)",
    "torch.randn(256, 100), torch.randint(0, 100, (256,))",
    args="self, x, t",
)
ARGMAX = source_of("return x.argmax(-1)", "torch.rand(64, 1000)", args="self, x")
BATCH_NORM = source_of(
    "return self.n(x)",
    "torch.randn(8, 16, 10, 10)",
    init="self.n = nn.BatchNorm2d(16)",
    args="self, x",
)
TRIANGULAR = source_of(
    "return a @ b",
    "torch.triu(torch.randn(90, 90)), torch.triu(torch.randn(90, 90))",
    args="self, a, b",
)
QUANTISE = source_of("return torch.round(x * 8) / 8", "torch.randn(64, 500)", args="self, x")
THRESHOLD = source_of(
    "return (x > x.mean(-1, keepdim=True)).float() * x", "torch.randn(64, 700)", args="self, x"
)
LSTM = source_of(
    "return self.l(x)[0]",
    "torch.randn(4, 30, 32)",
    init="self.l = nn.LSTM(32, 40, batch_first=True)",
    args="self, x",
)
FFT = source_of("return torch.fft.fft(x)", "torch.randn(16, 256)", args="self, x")
LOGSUMEXP = source_of("return torch.logsumexp(x, -1)", "torch.randn(128, 500)", args="self, x")
