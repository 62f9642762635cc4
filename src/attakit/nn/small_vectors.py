"""Small networks for rows of a table and for texts."""

from __future__ import annotations

from torch import Tensor, nn

from attakit.errors import check_count


class SmallMLP(nn.Module):
    """Two hidden layers with batch norm, for the rows of a table.

    Parameters
    ----------
    classes
        Number of classes.
    inputs
        Numbers in one row.
    width
        Units of the first hidden layer.
    hidden
        Number of penultimate features.

    Examples
    --------
    >>> import torch
    >>> SmallMLP(inputs=7)(torch.zeros(2, 7)).shape
    torch.Size([2, 10])
    """

    def __init__(
        self, *, classes: int = 10, inputs: int = 1, width: int = 64, hidden: int = 64
    ) -> None:
        super().__init__()
        given = {"classes": classes, "inputs": inputs, "width": width, "hidden": hidden}
        for name, value in given.items():
            check_count("SmallMLP", name, value, at_least=1)
        self.block1 = _block(inputs, width)
        self.block2 = _block(width, hidden)
        self.head = nn.Linear(hidden, classes)

    def forward(self, rows: Tensor) -> Tensor:
        logits: Tensor = self.head(self.block2(self.block1(rows)))
        return logits


class SmallText(nn.Module):
    """Averages the embeddings of a text's tokens, then one hidden layer with batch norm.

    Parameters
    ----------
    classes
        Number of classes.
    vocabulary
        Number of token ids; 0 is padding and is ignored.
    width
        Size of an embedding.
    hidden
        Number of penultimate features.

    Examples
    --------
    >>> import torch
    >>> model = SmallText(vocabulary=50).eval()
    >>> short, padded = torch.tensor([[3, 7]]), torch.tensor([[3, 7, 0, 0]])
    >>> torch.equal(model(short), model(padded))
    True
    """

    def __init__(
        self, *, classes: int = 10, vocabulary: int = 4096, width: int = 64, hidden: int = 64
    ) -> None:
        super().__init__()
        given = {"classes": classes, "vocabulary": vocabulary, "width": width, "hidden": hidden}
        for name, value in given.items():
            check_count("SmallText", name, value, at_least=1)
        self.embedding = nn.Embedding(vocabulary, width, padding_idx=0)
        self.block = _block(width, hidden)
        self.head = nn.Linear(hidden, classes)

    def forward(self, tokens: Tensor) -> Tensor:
        counted = (tokens != 0).unsqueeze(2)
        total = (self.embedding(tokens) * counted).sum(dim=1)
        mean = total / counted.sum(dim=1).clamp(min=1)
        logits: Tensor = self.head(self.block(mean))
        return logits


def _block(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, outputs, bias=False), nn.BatchNorm1d(outputs), nn.ReLU())
